// Kernel 2: kernels/gemm_combine_push.cuh, its launches, and block per job.
#include "protocol/layer/gemm.hpp"

namespace fusescope::protocol {
namespace {

struct Compute {
  GemmCall gemm;
  bool joins;      // all hands
  bool announces;  // block per job
};

bool runs_group(const Compute& c, int group) {
  return c.joins && group < c.gemm.layer.s.job_groups;
}

// Behind the GEMM: its own end barrier, then the join barrier.
Task leave_gemm(Thread& t, Compute c, int threads, bool consumes) {
  const Layer& layer = c.gemm.layer;
  if (!c.joins) {
    co_await t.meet(c.gemm.block.named + kGemmBarrier, threads, kBlockThreads);
    co_return;
  }
  const bool mixes = layer.has(Bug::join_on_gemm_barrier) && consumes;
  if (!layer.has(Bug::join_barrier_missing) && !mixes) {
    co_await t.meet(c.gemm.block.named + kGemmBarrier, threads, kBlockThreads);
  }
  if (!layer.has(Bug::join_proxy_fence_missing)) {
    t.fence_proxy_async();
  }
  if (layer.has(Bug::join_barrier_missing)) {
    co_return;
  }
  if (mixes) {
    co_await t.meet(c.gemm.block.named + kGemmBarrier, threads, kConsumers * kConsumerThreads);
    co_return;
  }
  co_await t.meet(c.gemm.block.named + kJoinBarrier, threads, kBlockThreads);
}

JobGroup jobs_of(const Compute& c, int group) {
  return {c.gemm.layer, c.gemm.round, c.gemm.block, group, -1};
}

int summer_index(int group, int warp) {
  return group * kSummingWarps + warp;
}

// The parts of a warpgroup as threads that `add(role, index, stores)` makes.
template <class Add>
void start_parts(const JobGroup& jobs, Add add) {
  Machine& machine = jobs.layer.machine;
  Thread& front = add(Role::front, jobs.group, false);
  for (int warp = 0; warp < kSummingWarps; ++warp) {
    Thread& summer = add(Role::summer, summer_index(jobs.group, warp), false);
    machine.start(summer, sum_jobs(summer, jobs, warp));
    if (warp == 0) {
      front.leave_loads_to(summer);
    }
  }
  machine.start(front, fetch_jobs(front, jobs));
  Thread& pusher = add(Role::pusher, jobs.group, true);
  machine.start(pusher, push_rows(pusher, jobs));
}

// A warp of the GEMM's that goes on as one of a job's.
Thread& fork_part(Thread& t, Role role, int index, bool stores) {
  Label label = t.label();
  label.role = role;
  label.index = static_cast<std::int16_t>(index);
  return t.machine().fork(t, label, stores);
}

// The copy warpgroup is the third job group: the producer's warp its front, the idle one and the first
// storer's its summing warps, the second storer's its pusher.
Task producer(Thread& t, Compute c) {
  co_await t.meet(c.gemm.block.named + kGemmBarrier, kProducerThreads, kBlockThreads);
  co_await produce_tiles(t, c.gemm);
  co_await leave_gemm(t, c, kProducerThreads, false);
  if (runs_group(c, 2)) {
    Thread& summer = fork_part(t, Role::summer, summer_index(2, 0), false);
    t.machine().start(summer, sum_jobs(summer, jobs_of(c, 2), 0));
    t.leave_loads_to(summer);
    co_await fetch_jobs(t, jobs_of(c, 2));
  }
}

Task consumer(Thread& t, Compute c, int group) {
  if (group == 0) {
    const bool lost =
        c.gemm.worker == 0 && c.gemm.layer.loses(Fault::lost_residency, t.rank(), c.gemm.round);
    if (c.announces && !lost) {
      co_await t.fetch_add(c.gemm.layer.places[t.rank()].resident, 1, Order::relaxed, Scope::gpu);
    }
    init_gemm(t, c.gemm);
  }
  co_await t.meet(c.gemm.block.named + kGemmBarrier, kConsumerThreads, kBlockThreads);
  co_await consume_tiles(t, c.gemm, group);
  co_await leave_gemm(t, c, kConsumerThreads, true);
  if (runs_group(c, group)) {
    start_parts(jobs_of(c, group), [&](Role role, int index, bool stores) -> Thread& {
      return fork_part(t, role, index, stores);
    });
  }
}

Task storer(Thread& t, Compute c, int group) {
  co_await t.meet(c.gemm.block.named + kGemmBarrier, kStorerThreads, kBlockThreads);
  co_await store_tiles(t, c.gemm, group);
  co_await leave_gemm(t, c, kStorerThreads, false);
  if (runs_group(c, 2)) {
    if (group == 0) {
      co_await sum_jobs(t, jobs_of(c, 2), 1);
    } else {
      co_await push_rows(t, jobs_of(c, 2));
    }
  }
}

class Launcher {
 public:
  Launcher(Layer& layer, Thread& stream, int rank, const Round& round, const char* kernel)
      : layer_(layer),
        stream_(stream),
        rank_(rank),
        round_(round),
        kernel_(kernel),
        launch_(layer.machine.begin_launch()) {}

  LaunchId launch() const { return launch_; }

  Thread& thread(Role role, int block, int index, bool stores) const {
    return layer_.machine.add_thread(
        stream_, launch_,
        {role, kernel_, static_cast<std::int16_t>(rank_), static_cast<std::int16_t>(block),
         static_cast<std::int16_t>(index)},
        stores);
  }

  const BlockPlaces& fresh_block(int block) const {
    const BlockPlaces& b = layer_.places[rank_].blocks[block];
    layer_.machine.memory().forget(b.smem, b.cells);
    layer_.machine.forget_barriers(b.landed, kMostTokensPerBlock, b.named, kNamedBarriers);
    return b;
  }

  void start_gemm_block(int block, int blocks, bool joins, bool announces) const {
    Machine& machine = layer_.machine;
    const Scenario& s = layer_.s;
    const RankPlaces& mine = layer_.places[rank_];
    const BlockPlaces& b = fresh_block(block);
    const GemmCall gemm{.layer = layer_,
                        .round = round_,
                        .block = b,
                        .rank = rank_,
                        .worker = block,
                        .workers = blocks,
                        .which = 2,
                        .k_steps = s.n_tiles(),
                        .a = mine.act,
                        .a_per_block = s.n_tiles() * s.row_block,
                        .a_per_step = s.row_block,
                        .d = mine.partial,
                        .activates = false,
                        .a_has_padding = false,
                        .halves = true,
                        .signal = mine.done,
                        .loses_tile = layer_.loses(Fault::lost_tile, rank_, round_)};
    const Compute compute{gemm, joins, announces};
    Thread& p = thread(Role::producer, block, -1, false);
    machine.start(p, producer(p, compute));
    for (int group = 0; group < kConsumers; ++group) {
      Thread& c = thread(Role::consumer, block, group, false);
      machine.start(c, consumer(c, compute, group));
      Thread& s_ = thread(Role::storer, block, group, true);
      machine.start(s_, storer(s_, compute, group));
    }
  }

  void start_job_block(int block) const {
    const BlockPlaces& b = fresh_block(block);
    for (int group = 0; group < layer_.s.job_groups; ++group) {
      start_group({layer_, round_, b, group, -1}, block);
    }
  }

  void start_group(const JobGroup& jobs, int block) const {
    start_parts(jobs, [&](Role role, int index, bool stores) -> Thread& {
      return thread(role, block, index, stores);
    });
  }

 private:
  Layer& layer_;
  Thread& stream_;
  int rank_;
  const Round& round_;
  const char* kernel_;
  LaunchId launch_;
};

Task wait_for_residency(Thread& t, Layer& layer, int compute_blocks) {
  co_await t.wait_at_least(layer.places[t.rank()].resident,
                           static_cast<std::uint64_t>(compute_blocks), Order::acquire, Scope::gpu);
}

// The forked branch of block per job: waits until the GEMM's blocks are resident, then runs one
// short-lived block per job, in job order, on the SMs that are left.
Task job_branch(Thread& branch, Layer& layer, int rank, const Round& round, int compute_blocks) {
  Machine& machine = layer.machine;
  const int device = layer.s.device_of(rank);
  if (!layer.has(Bug::jobs_before_gemm_resident)) {
    co_await branch.take_sms(1);
    const Launcher residency(layer, branch, rank, round, "wait_for_residency");
    Thread& t = residency.thread(Role::barrier, -1, -1, false);
    machine.start(t, wait_for_residency(t, layer, compute_blocks));
    co_await branch.join(residency.launch());
    machine.give_sms(device, 1);
  }
  // One launch a block, so that an SM is free again when its block has ended.
  std::vector<LaunchId> running;
  std::size_t ended = 0;
  for (int job = 0; job < layer.s.tokens(); ++job) {
    if (machine.free_sms(device) == 0 && ended < running.size()) {
      co_await branch.join(running[ended++]);
      machine.give_sms(device, 1);
    }
    co_await branch.take_sms(1);
    const Launcher block(layer, branch, rank, round, "block_per_job");
    const int place = layer.s.sms + job;
    block.start_group({layer, round, block.fresh_block(place), 0, job}, place);
    running.push_back(block.launch());
  }
  while (ended < running.size()) {
    co_await branch.join(running[ended++]);
    machine.give_sms(device, 1);
  }
}

}  // namespace

Task gemm_combine_push(Thread& stream, Layer& layer, int rank, const Round& round) {
  Machine& machine = layer.machine;
  const Scenario& s = layer.s;
  const bool per_job = s.config.combine == Combine::block_per_job;
  const int compute_blocks = s.sms - s.config.combine_comm_sms;

  LaunchId branch = -1;
  if (per_job) {
    branch = machine.begin_launch();
    Thread& t = machine.add_thread(
        stream, branch, {Role::stream, "branch", static_cast<std::int16_t>(rank), -1, -1}, false);
    machine.start(t, job_branch(t, layer, rank, round, compute_blocks));
  }
  const int blocks = per_job ? compute_blocks : s.sms;
  co_await stream.take_sms(blocks);
  const Launcher kernel(layer, stream, rank, round, "gemm_combine_push");
  for (int block = 0; block < blocks; ++block) {
    if (block < compute_blocks) {
      kernel.start_gemm_block(block, compute_blocks, s.config.all_hands && !per_job, per_job);
    } else {
      kernel.start_job_block(block);
    }
  }
  co_await stream.join(kernel.launch());
  machine.give_sms(s.device_of(rank), blocks);
  if (per_job) {
    co_await stream.join(branch);
  }
}

}  // namespace fusescope::protocol
