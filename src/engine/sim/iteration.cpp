// One rank's stream in the fused layer, phase by phase.
#include "engine/sim/kernels.hpp"

namespace fusescope::engine::sim {

namespace {

Task run_kernel(Rank& rank, Stage stage, void (*start)(Rank&)) {
  const Time begin = rank.world.scheduler.now();
  start(rank);
  co_await end_of_kernel(rank, stage, begin);
}

// The kernels one after the other.
Task kernels_apart(Rank& rank, bool whole) {
  World& world = rank.world;
  co_await run_kernel(rank, Stage::dispatch_gemm, start_dispatch_gemm);
  co_await launch_gap(rank);
  if (world.config.activation == Activation::separate) {
    co_await phase(rank, Kind::activation, world.costs.activation(rank.tables.rows()));
    co_await launch_gap(rank);
  }
  if (world.config.combine == Combine::dispenser) {
    co_await phase(rank, Kind::dispenser_reset, world.profile.small_kernel * 1e3);
    co_await launch_gap(rank);
  }
  co_await run_kernel(rank, Stage::gemm_combine_push, start_gemm_combine_push);
  if (whole) {
    co_await launch_gap(rank);
    co_await run_kernel(rank, Stage::final_reduce, start_final_reduce);
  }
}

// Each block of a kernel as soon as one of the kernel before has left its SM. A kernel's slice begins where
// the one before ends.
Task kernels_overlapping(Rank& rank, bool whole) {
  Time begin = rank.world.scheduler.now();
  start_dispatch_gemm(rank);
  start_gemm_combine_push(rank);
  if (whole) {
    start_final_reduce(rank);
  }
  for (const Stage stage : {Stage::dispatch_gemm, Stage::gemm_combine_push, Stage::final_reduce}) {
    if (whole || stage != Stage::final_reduce) {
      co_await end_of_kernel(rank, stage, begin);
      begin = rank.world.scheduler.now();
    }
  }
}

}  // namespace

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
  if (world.overlaps()) {
    co_await kernels_overlapping(rank, whole);
  } else {
    co_await kernels_apart(rank, whole);
  }
  world.wall[rank.id] = world.scheduler.now();
}

}  // namespace fusescope::engine::sim
