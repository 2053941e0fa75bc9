// Phases of a rank's stream: in order, one slice each, with launch gaps between them.
#include "engine/sim/kernels.hpp"
#include "timeline/dependencies.hpp"

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

void begin_kernel(Rank& rank, Stage stage, int blocks) {
  rank.kernels[static_cast<std::size_t>(stage)] =
      std::make_unique<Kernel>(rank.id, blocks, rank.world.sms());
}

Task get_sm(Rank& rank, Stage stage, int block) {
  if (Kernel* const before = rank.kernel_before(stage); before != nullptr) {
    co_await before->sm_for(block).opened();
  }
}

Task end_after_kernel_before(Rank& rank, Stage stage) {
  if (Kernel* const before = rank.kernel_before(stage); before != nullptr) {
    co_await before->ended().opened();
    Scheduler& scheduler = rank.world.scheduler;
    co_await scheduler.until(scheduler.now() + us(rank.world.profile.poll_latency));
  }
}

void end_block(Rank& rank, Stage stage) {
  rank.kernel(stage).end_block(rank.world.scheduler, us(rank.world.profile.block_launch));
}

Task end_of_kernel(Rank& rank, Stage stage, Time begin) {
  World& world = rank.world;
  co_await rank.kernel(stage).ended().opened();
  world.recorder.slice(rank.stream,
                       timeline::phase_of(stage, world.config.form == LayerForm::serial), begin,
                       world.scheduler.now());
}

}  // namespace fusescope::engine::sim
