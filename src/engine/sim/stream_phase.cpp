// Phases of a rank's stream: in order, one slice each, with launch gaps between them.
#include "engine/sim/kernels.hpp"

namespace fusescope::engine::sim {

Task phase(Rank& rank, Kind kind, double nanoseconds, int index) {
  Scheduler& scheduler = rank.world.scheduler;
  const Time begin = scheduler.now();
  co_await scheduler.until(begin + rounded(nanoseconds * rank.noise()));
  rank.world.recorder.slice(rank.stream, kind, begin, scheduler.now(), {.index = index});
}

Task meet(Rank& rank, Kind kind, Rendezvous& rendezvous, int index) {
  Scheduler& scheduler = rank.world.scheduler;
  const Time begin = scheduler.now();
  co_await rendezvous;
  rank.world.recorder.slice(rank.stream, kind, begin, scheduler.now(), {.index = index});
}

Task prologue(Rank& rank) {
  const World& world = rank.world;
  co_await meet(rank, Kind::ids_exchange, rank.world.ids_exchanged);
  co_await phase(rank, Kind::schedule_build, world.costs.schedule);
  if (world.costs.copy_in_left > 0) {
    co_await phase(rank, Kind::copy_in, world.costs.copy_in_left);
  }
}

Task launch_gap(Rank& rank) {
  Scheduler& scheduler = rank.world.scheduler;
  co_await scheduler.until(scheduler.now() + rounded(rank.world.costs.launch_gap));
}

void begin_kernel(Rank& rank, int blocks) {
  rank.running = std::make_unique<FillCounter>(0, blocks, "the block count of a kernel", rank.id);
}

void end_block(Rank& rank) {
  rank.running->add(rank.world.scheduler, 0);
}

}  // namespace fusescope::engine::sim
