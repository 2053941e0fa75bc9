// One rank's stream in the serial layer: the same GEMMs and tables, each phase on all SMs, one after the
// other. Its timeline holds the phases only, so the GEMMs' blocks record nothing.
#include "engine/sim/kernels.hpp"

namespace fusescope::engine::sim {
namespace {

Task tile_block(Rank& rank, Stage stage, Gemm gemm, int block, int blocks) {
  const TrackId unrecorded = kNoTrack;
  const int end = tiles(rank, gemm.costs);
  for (int tile = block; tile < end; tile += blocks) {
    co_await run_tile(rank, gemm, unrecorded, tile);
  }
  end_block(rank, stage);
}

Task gemm_kernel(Rank& rank, Stage stage, Gemm gemm) {
  World& world = rank.world;
  const Time begin = world.scheduler.now();
  begin_kernel(rank, stage, world.sms());
  for (int block = 0; block < world.sms(); ++block) {
    world.scheduler.spawn(tile_block(rank, stage, gemm, block, world.sms()));
  }
  co_await end_of_kernel(rank, stage, begin);
}

}  // namespace

Task run_serial_layer(Rank& rank) {
  World& world = rank.world;
  const Costs& costs = world.costs;
  if (world.config.schedule == ScheduleSite::fused) {
    co_await prologue(rank);
  } else {
    co_await meet(rank, Kind::ids_exchange, world.ids_exchanged);
    co_await launch_gap(rank);
    co_await phase(rank, Kind::schedule_build, costs.schedule);
  }
  co_await launch_gap(rank);
  co_await meet(rank, Kind::all_gather, world.rows_gathered);
  co_await launch_gap(rank);
  co_await phase(rank, Kind::scatter_rows, costs.scatter_rows);
  co_await launch_gap(rank);
  co_await gemm_kernel(rank, Stage::dispatch_gemm, gemm_1(rank));
  co_await launch_gap(rank);
  if (world.config.activation == Activation::separate) {
    co_await phase(rank, Kind::activation, costs.activation(rank.tables.rows()));
    co_await launch_gap(rank);
  }
  co_await gemm_kernel(rank, Stage::gemm_combine_push, gemm_2(rank));
  co_await launch_gap(rank);
  co_await phase(rank, Kind::combine, costs.combine);
  co_await launch_gap(rank);
  co_await meet(rank, Kind::reduce_scatter, world.rows_reduced);
  world.wall[rank.id] = world.scheduler.now();
}

}  // namespace fusescope::engine::sim
