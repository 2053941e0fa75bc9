// Kernel 2: kernels/gemm_combine_push.cuh, its launches, and block per job.
#include "protocol/layer/gemm.hpp"
#include "protocol/layer/resident_kernel.hpp"

namespace fusescope::protocol {
namespace {

struct Compute {
  GemmCall gemm;
  bool joins;      // all hands
  bool announces;  // block per job
};

// By all threads of a block of kernel 2: `threads` of them with this call, and among them the `first`, which
// waits for what kernel 1 releases. False: given up, in all.
Task follow_kernel_1(Thread& t, Layer& layer, BarrierId barrier, int threads, int in_all,
                     bool first, bool& begun) {
  begun = true;
  if (!layer.overlaps()) {
    co_return;
  }
  if (first && !layer.has(Bug::begun_unwatched)) {
    const std::uint64_t iteration = layer.iteration_of(t);
    begun = co_await t.wait_at_least(layer.places[t.rank()].begun, iteration, Order::acquire,
                                     Scope::gpu);
  }
  if (!layer.has(Bug::begun_seen_by_one)) {
    begun = co_await t.meet(barrier, threads, in_all, begun);
  }
}

Task follow_in_gemm_block(Thread& t, const Compute& c, int threads, bool first, bool& begun) {
  co_await follow_kernel_1(t, c.gemm.layer, c.gemm.block.named + kBeginBarrier, threads,
                           kBlockThreads, first, begun);
}

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

// How a part begins: behind the block's GEMM, or as a warp of a block that takes jobs only.
struct PartBegin {
  bool new_block;  // of kernel 2
  int warps;       // that a block of jobs has
};

Task begin_in_job_block(Thread& t, const JobGroup& jobs, PartBegin begin, bool first, bool& begun) {
  begun = true;
  if (begin.new_block) {
    co_await follow_kernel_1(t, jobs.layer, jobs.block.named + kBeginBarrier, 1, begin.warps, first,
                             begun);
  }
}

Task run_front(Thread& t, JobGroup jobs, PartBegin begin) {
  bool begun = false;
  co_await begin_in_job_block(t, jobs, begin, jobs.group == 0, begun);
  if (begun) {
    co_await fetch_jobs(t, jobs);
  }
}

Task run_summer(Thread& t, JobGroup jobs, int warp, PartBegin begin) {
  bool begun = false;
  co_await begin_in_job_block(t, jobs, begin, false, begun);
  if (begun) {
    co_await sum_jobs(t, jobs, warp);
  }
}

Task run_pusher(Thread& t, JobGroup jobs, PartBegin begin) {
  bool begun = false;
  co_await begin_in_job_block(t, jobs, begin, false, begun);
  if (begun) {
    co_await push_rows(t, jobs);
  }
}

// The parts of a warpgroup as threads that `add(role, index, stores)` makes.
template <class Add>
void start_parts(const JobGroup& jobs, PartBegin begin, Add add) {
  Machine& machine = jobs.layer.machine;
  Thread& front = add(Role::front, jobs.group, false);
  for (int warp = 0; warp < kSummingWarps; ++warp) {
    Thread& summer = add(Role::summer, summer_index(jobs.group, warp), false);
    machine.start(summer, run_summer(summer, jobs, warp, begin));
    if (warp == 0) {
      front.leave_loads_to(summer);
    }
  }
  machine.start(front, run_front(front, jobs, begin));
  Thread& pusher = add(Role::pusher, jobs.group, true);
  machine.start(pusher, run_pusher(pusher, jobs, begin));
}

// A warp of the GEMM's that goes on as one of a job's.
Thread& fork_part(Thread& t, Role role, int index, bool stores) {
  Label label = t.label();
  label.role = role;
  label.index = static_cast<std::int16_t>(index);
  return t.machine().fork(t, label, stores);
}

// The copy warpgroup is the third job group: the producer's warp its front, the scheduler's and the first
// storer's its summing warps, the second storer's its pusher.
Task producer(Thread& t, Compute c, const Thread& summer) {
  bool begun = false;
  co_await follow_in_gemm_block(t, c, kProducerThreads, false, begun);
  if (!begun) {
    co_return;
  }
  co_await t.meet(c.gemm.block.named + kGemmBarrier, kProducerThreads, kBlockThreads);
  co_await produce_tiles(t, c.gemm);
  co_await leave_gemm(t, c, kProducerThreads, false);
  if (runs_group(c, 2)) {
    t.leave_loads_to(summer);
    co_await fetch_jobs(t, jobs_of(c, 2));
  }
}

Task scheduler(Thread& t, Compute c) {
  bool begun = false;
  co_await follow_in_gemm_block(t, c, kSchedulerThreads, false, begun);
  if (!begun) {
    co_return;
  }
  co_await t.meet(c.gemm.block.named + kGemmBarrier, kSchedulerThreads, kBlockThreads);
  co_await schedule_tiles(t, c.gemm);
  co_await leave_gemm(t, c, kSchedulerThreads, false);
  if (runs_group(c, 2)) {
    co_await sum_jobs(t, jobs_of(c, 2), 0);
  }
}

Task consumer(Thread& t, Compute c, int group, int warp) {
  const int threads = kConsumerThreads / consumer_warps(c.gemm.layer.s, c.gemm.activates);
  const bool is_first = group == 0 && warp == 0;
  bool begun = false;
  co_await follow_in_gemm_block(t, c, threads, is_first, begun);
  if (!begun) {
    co_return;
  }
  if (is_first) {
    const bool lost =
        c.gemm.worker == 0 && c.gemm.layer.loses(Fault::lost_residency, t.rank(), c.gemm.round);
    if (c.announces && !lost) {
      co_await t.fetch_add(c.gemm.layer.places[t.rank()].resident, 1, Order::relaxed, Scope::gpu);
    }
    init_gemm(t, c.gemm);
  }
  co_await t.meet(c.gemm.block.named + kGemmBarrier, threads, kBlockThreads);
  co_await consume_tiles(t, c.gemm, group, warp);
  co_await leave_gemm(t, c, threads, true);
  if (warp == 0 && runs_group(c, group)) {
    start_parts(jobs_of(c, group), {false, 0}, [&](Role role, int index, bool stores) -> Thread& {
      return fork_part(t, role, index, stores);
    });
  }
}

Task storer(Thread& t, Compute c, int group) {
  bool begun = false;
  co_await follow_in_gemm_block(t, c, kStorerThreads, false, begun);
  if (!begun) {
    co_return;
  }
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

struct Kernel2 {
  Layer& layer;
  ResidentKernel& kernel;
  int rank;
  const Round& round;
  bool per_job;
  int compute_blocks;

  void start_gemm_block(int block, const BlockPlaces& b) const {
    Machine& machine = layer.machine;
    const Scenario& s = layer.s;
    const RankPlaces& mine = layer.places[rank];
    const bool gated = kernel.is_early() && !layer.has(Bug::activations_unwatched);
    const GemmCall gemm{
        .layer = layer,
        .round = round,
        .block = b,
        .rank = rank,
        .worker = block,
        .workers = compute_blocks,
        .which = 2,
        .k_steps = s.n_tiles(),
        .a = mine.act,
        .a_per_block = s.n_tiles() * s.row_block,
        .a_per_step = s.row_block,
        .d = mine.partial,
        .next_tile = s.config.tile_counter != TileCounter::none ? mine.next_tile + 1 : -1,
        .activates = false,
        .a_has_padding = false,
        .halves = true,
        .gate = gated ? mine.computed : -1,
        .open_at = static_cast<std::uint64_t>(s.n_tiles()),
        .signal = mine.done,
        .loses_tile = layer.loses(Fault::lost_tile, rank, round)};
    const Compute compute{gemm, s.config.all_hands && !per_job, per_job};
    Thread& p = kernel.thread(Role::producer, block, -1, false);
    Thread& f = kernel.thread(Role::scheduler, block, -1, false);
    machine.start(p, producer(p, compute, f));
    machine.start(f, scheduler(f, compute));
    const int warps = consumer_warps(s, gemm.activates);
    for (int group = 0; group < kConsumers; ++group) {
      for (int warp = 0; warp < warps; ++warp) {
        Thread& c = kernel.thread(Role::consumer, block, group * warps + warp, false);
        machine.start(c, consumer(c, compute, group, warp));
      }
      Thread& w = kernel.thread(Role::storer, block, group, true);
      machine.start(w, storer(w, compute, group));
    }
  }

  void start_job_block(int block, const BlockPlaces& b) const {
    const PartBegin begin{true, layer.s.job_groups * (2 + kSummingWarps)};
    for (int group = 0; group < layer.s.job_groups; ++group) {
      start_parts({layer, round, b, group, -1}, begin,
                  [&](Role role, int index, bool stores) -> Thread& {
                    return kernel.thread(role, block, index, stores);
                  });
    }
  }

  void start_block(int block) const {
    const BlockPlaces& b = kernel.begin_block(block);
    if (block < compute_blocks) {
      start_gemm_block(block, b);
    } else {
      start_job_block(block, b);
    }
    kernel.end_block();
  }
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
  const auto thread = [&](LaunchId launch, const char* kernel, Role role, int block, int index,
                          bool stores) -> Thread& {
    return machine.add_thread(branch, launch,
                              {role, kernel, static_cast<std::int16_t>(rank),
                               static_cast<std::int16_t>(block), static_cast<std::int16_t>(index)},
                              stores);
  };
  if (!layer.has(Bug::jobs_before_gemm_resident)) {
    co_await branch.take_sms(1);
    const LaunchId residency = machine.begin_launch();
    Thread& t = thread(residency, "wait_for_residency", Role::barrier, -1, -1, false);
    machine.start(t, wait_for_residency(t, layer, compute_blocks));
    co_await branch.join(residency);
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
    const LaunchId launch = machine.begin_launch();
    const int place = layer.s.sms + job;
    start_parts({layer, round, layer.fresh_block(rank, place), 0, job}, {false, 0},
                [&](Role role, int index, bool stores) -> Thread& {
                  return thread(launch, "block_per_job", role, place, index, stores);
                });
    running.push_back(launch);
  }
  while (ended < running.size()) {
    co_await branch.join(running[ended++]);
    machine.give_sms(device, 1);
  }
}

int compute_blocks_of(const Scenario& s) {
  return s.sms - s.config.combine_comm_sms;
}

}  // namespace

LaunchId begin_block_per_job(Layer& layer, Thread& stream, int rank, const Round& round) {
  Machine& machine = layer.machine;
  const LaunchId branch = machine.begin_launch();
  Thread& t = machine.add_thread(
      stream, branch, {Role::stream, "branch", static_cast<std::int16_t>(rank), -1, -1}, false);
  machine.start(t, job_branch(t, layer, rank, round, compute_blocks_of(layer.s)));
  return branch;
}

Task begin_gemm_combine_push(ResidentKernel& kernel, Layer& layer, int rank, const Round& round,
                             LaunchId before) {
  const Scenario& s = layer.s;
  const bool per_job = s.config.combine == Combine::block_per_job;
  const int compute_blocks = compute_blocks_of(s);
  const int blocks = per_job ? compute_blocks : s.sms;
  const Kernel2 kernel_2{layer, kernel, rank, round, per_job, compute_blocks};
  if (!layer.overlaps()) {
    co_await kernel.take_sms(blocks);
  }
  for (int block = 0; block < blocks; ++block) {
    if (layer.overlaps()) {
      co_await kernel.follow(layer.has(Bug::kernel_2_ends_early) ? -1 : before);
    }
    kernel_2.start_block(block);
  }
}

}  // namespace fusescope::protocol
