// One rank's stream in the fused layer, phase by phase.
#include "engine/sim/kernels.hpp"

namespace fusescope::engine::sim {

Task run_fused_layer(Rank& rank) {
  World& world = rank.world;
  // The counterfactual rungs are the two kernels and what lies between them, nothing around.
  const bool whole = world.config.study == Study::full;
  if (whole && world.config.schedule == ScheduleSite::fused) {
    co_await prologue(rank);
    co_await launch_gap(rank);
  } else if (whole) {
    co_await meet(rank, Kind::ids_exchange, world.ids_exchanged);
    co_await launch_gap(rank);
    co_await phase(rank, Kind::schedule_build, world.costs.schedule);
    co_await launch_gap(rank);
    // No peer may still read the last iteration's tokens when they are overwritten.
    co_await meet(rank, Kind::barrier, world.entry_barrier, 0);
    co_await launch_gap(rank);
    co_await phase(rank, Kind::copy_in, world.costs.copy_in);
    co_await launch_gap(rank);
    co_await meet(rank, Kind::barrier, world.copied_barrier, 1);
    co_await launch_gap(rank);
  }
  co_await dispatch_gemm(rank);
  co_await launch_gap(rank);
  if (world.config.activation == Activation::separate) {
    co_await phase(rank, Kind::activation, world.costs.activation(rank.tables.rows()));
    co_await launch_gap(rank);
  }
  if (world.config.combine == Combine::dispenser) {
    co_await phase(rank, Kind::dispenser_reset, world.profile.small_kernel * 1e3);
    co_await launch_gap(rank);
  }
  co_await gemm_combine_push(rank);
  if (whole) {
    co_await launch_gap(rank);
    co_await final_reduce(rank);
  }
  world.wall[rank.id] = world.scheduler.now();
}

}  // namespace fusescope::engine::sim
