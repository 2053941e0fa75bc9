#include "engine/cuda/iteration.hpp"

#include <algorithm>
#include <exception>

#include "kernels/activation.hpp"
#include "kernels/gemm/gemm_launch.hpp"
#include "kernels/ids_exchange.hpp"
#include "kernels/prologue.hpp"
#include "kernels/row_copies.hpp"
#include "kernels/seed_counters.hpp"

namespace fusescope::engine::cuda {
namespace {

using kernels::BarrierPoint;
using kernels::Bf16;
using kernels::Part;
using kernels::PrologueSteps;
using timeline::Kind;

// Runs on a thread of the driver's, which must see no exception. The kernels run on the tables even
// after a failure, so these are left whole: nothing is copied before the build has ended.
void build_on_host(void* data) {
  auto& host = *static_cast<HostSchedule*>(data);
  try {
    Routing routing;
    routing.tokens = host.shape.tokens();
    routing.topk = host.shape.topk;
    routing.experts.assign(host.ids, host.ids + host.shape.hits());
    const ScheduleTables tables =
        build_tables_thrust(host.shape, routing, host.slot_order, host.rank, ThrustSystem::cpp);
    std::copy(tables.expert_rows.begin(), tables.expert_rows.end(), host.tables.expert_rows);
    std::copy(tables.slots.begin(), tables.slots.end(), host.tables.slots);
    std::copy(tables.pull_order.begin(), tables.pull_order.end(), host.tables.pull_order);
    std::copy(tables.job_order.begin(), tables.job_order.end(), host.tables.job_order);
    std::copy(tables.slack.begin(), tables.slack.end(), host.tables.slack);
    std::copy(tables.token_of_slot.begin(), tables.token_of_slot.end(), host.tables.token_of_slot);
  } catch (const std::exception& error) {
    host.error = error.what();  // the tables stay those of the last build
  }
}

void copy(void* to, const void* from, std::int64_t bytes, cudaStream_t stream) {
  FUSESCOPE_CUDA(
      cudaMemcpyAsync(to, from, static_cast<std::size_t>(bytes), cudaMemcpyDefault, stream));
}

// Elements of a rank's [T, H] rows.
std::size_t plane(const kernels::LayerArgs& a) {
  return static_cast<std::size_t>(a.tokens_per_rank) * static_cast<std::size_t>(a.hidden);
}

}  // namespace

Iteration::Iteration(const LayerMemory& memory, const Config& config,
                     const std::vector<RankPlan>& plans, const Lane& lane, PhaseMarks* marks)
    : memory_(memory), config_(config), plans_(plans), lane_(lane), marks_(marks) {}

template <class Step>
void Iteration::each(Step step) const {
  for (const int rank : lane_.ranks) {
    step(rank);
  }
}

template <class Step>
void Iteration::in_parts(Step step) const {
  if (lane_.ranks.size() == 1) {
    step(lane_.ranks.front(), Part{true, true});
    return;
  }
  each([&](int rank) { step(rank, Part{true, false}); });
  each([&](int rank) { step(rank, Part{false, true}); });
}

void Iteration::enqueue() const {
  if (marks_ != nullptr) {
    marks_->begin(lane_.main.get());
  }
  if (config_.form == LayerForm::serial) {
    serial();
  } else {
    fused();
  }
}

void Iteration::enqueue_preparation() const {
  if (config_.form == LayerForm::fused && config_.study != Study::full) {
    if (config_.schedule == ScheduleSite::fused) {
      each([&](int rank) { kernels::launch_unstamp_ids(plan(rank).layer, lane_.main.get()); });
    }
    build_schedule();
  }
}

void Iteration::enqueue_start_line() const {
  if (lane_.ranks.empty()) {
    return;
  }
  lane_.start.hold(plan(lane_.ranks.front()).layer.guard, lane_.main.get());
  in_parts([&](int rank, Part part) {
    kernels::launch_start_line(plan(rank).layer, part, lane_.main.get());
  });
}

void Iteration::fused() const {
  const bool whole = config_.study == Study::full;
  if (whole) {
    before_kernels();
  }
  dispatch_gemm();
  if (config_.activation == Activation::separate) {
    activation();
  }
  gemm_combine_push();
  if (whole) {
    final_reduce();
  }
}

// With NCCL there are no barriers: its all-gather reads this rank's rows on this rank alone, and its
// reduce-scatter ends when every rank has combined its rows, so that no rank exchanges the ids of the next
// iteration while another still reads these.
void Iteration::serial() const {
  const bool by_nccl = lane_.nccl != nullptr;
  before_kernels();
  each([&](int rank) { all_gather(rank); });
  mark(Kind::all_gather);
  each([&](int rank) { kernels::launch_scatter_rows(plan(rank).layer, lane_.main.get()); });
  mark(Kind::scatter_rows);
  each([&](int rank) {
    const RankPlan& p = plan(rank);
    kernels::launch_grouped_gemm(p.dispatch.gemm, p.dispatch_variant, p.dispatch_blocks,
                                 lane_.main.get());
  });
  mark(Kind::gemm_1);
  if (config_.activation == Activation::separate) {
    activation();
  }
  each([&](int rank) {
    const RankPlan& p = plan(rank);
    kernels::launch_grouped_gemm(p.combine.gemm, p.combine_variant, p.combine_blocks,
                                 lane_.main.get());
  });
  mark(Kind::gemm_2);
  each([&](int rank) { combine_rows(rank); });
  mark(Kind::combine);
  if (!by_nccl) {
    barrier(BarrierPoint::combined);
  }
  each([&](int rank) { reduce_scatter(rank); });
  if (!by_nccl) {
    each([&](int rank) { kernels::launch_final_reduce(plan(rank).reduce, lane_.main.get()); });
  }
  mark(Kind::reduce_scatter);
}

// Until ids, tables, counters and everybody's tokens are there.
void Iteration::before_kernels() const {
  if (config_.schedule == ScheduleSite::fused) {
    prologue();
    return;
  }
  exchange_and_schedule();
  if (lane_.nccl != nullptr) {
    copy_in();
  } else {
    copy_in_between_barriers();
  }
}

void Iteration::prologue() const {
  const auto range = step("prologue");
  const auto launch = [&](PrologueSteps steps) {
    each([&](int rank) {
      kernels::PrologueArgs args = plan(rank).prologue;
      args.steps = steps;
      kernels::launch_prologue(args, lane_.main.get());
    });
  };
  if (lane_.ranks.size() == 1) {
    launch({});
  } else {
    launch({.send = true, .build = false, .meet = false});
    launch({.send = false, .build = true, .meet = false});
    launch({.send = false, .build = false, .meet = true});
  }
  mark(Kind::schedule_build);
}

void Iteration::exchange_and_schedule() const {
  {
    const auto range = step("ids exchange");
    in_parts([&](int rank, Part part) {
      kernels::launch_ids_exchange(plan(rank).layer, part, lane_.main.get());
    });
    mark(Kind::ids_exchange);
  }
  const auto range = step("schedule build");
  build_schedule();
  mark(Kind::schedule_build);
}

// Tables, and the counters that they seed. Of a study with schedule fused, too: what it needs beforehand.
void Iteration::build_schedule() const {
  each([&](int rank) {
    const RankMemory& m = memory_.rank(rank);
    if (config_.schedule == ScheduleSite::host) {
      build_schedule_on_host(rank);
    } else {
      const kernels::LayerArgs& a = m.args;
      build_tables_on_stream(
          lane_.main.get(), memory_.sizes(), a.shared[rank].ids, slot_order(config_), rank,
          {a.expert_rows, a.slots, a.pull_order, a.job_order, a.slack, a.token_of_slot, nullptr},
          m.table_workspace);
    }
    kernels::launch_seed_counters(plan(rank).layer, lane_.main.get());
  });
}

void Iteration::build_schedule_on_host(int rank) const {
  const RankMemory& m = memory_.rank(rank);
  HostSchedule& host = *m.host_schedule;
  host.slot_order = slot_order(config_);
  const TableSizes& sizes = memory_.sizes();
  const kernels::LayerArgs& a = m.args;
  cudaStream_t stream = lane_.main.get();
  copy(host.ids, a.shared[rank].ids, 4LL * sizes.hits(), stream);
  FUSESCOPE_CUDA(cudaLaunchHostFunc(stream, build_on_host, &host));
  copy(a.expert_rows, host.tables.expert_rows, 4LL * (sizes.experts + 1), stream);
  copy(a.slots, host.tables.slots, 4LL * sizes.hits(), stream);
  copy(a.pull_order, host.tables.pull_order, 4LL * sizes.tokens(), stream);
  copy(a.job_order, host.tables.job_order, 4LL * sizes.tokens(), stream);
  copy(a.slack, host.tables.slack, 4LL * sizes.max_row_blocks(), stream);
  copy(a.token_of_slot, host.tables.token_of_slot, 4LL * sizes.max_rows(), stream);
}

void Iteration::barrier(BarrierPoint point) const {
  const auto range = step("barrier");
  in_parts([&](int rank, Part part) {
    kernels::launch_device_barrier(plan(rank).layer, point, part, lane_.main.get());
  });
  mark(Kind::barrier);
}

void Iteration::copy_in() const {
  const auto range = step("copy-in");
  each([&](int rank) { kernels::launch_copy_in(plan(rank).layer, lane_.main.get()); });
  mark(Kind::copy_in);
}

void Iteration::copy_in_between_barriers() const {
  barrier(BarrierPoint::entry);
  copy_in();
  barrier(BarrierPoint::copied);
}

void Iteration::dispatch_gemm() const {
  const auto range = step("dispatch_gemm");
  each([&](int rank) {
    const RankPlan& p = plan(rank);
    kernels::launch_dispatch_gemm(apart(p.dispatch), p.dispatch_variant, p.dispatch_blocks,
                                  lane_.main.get());
  });
  mark(Kind::dispatch_gemm);
}

void Iteration::activation() const {
  const auto range = step("activation");
  each([&](int rank) { kernels::launch_activation(plan(rank).layer, lane_.main.get()); });
  mark(Kind::activation);
}

void Iteration::gemm_combine_push() const {
  const auto range = step("gemm_combine_push");
  each([&](int rank) {
    const RankPlan& p = plan(rank);
    const bool per_job = p.combine.announces_residency;
    if (per_job) {
      fork_branch();  // from before the GEMM
    }
    // Before the branch's kernels: where all streams share one hardware queue
    // (CUDA_DEVICE_MAX_CONNECTIONS=1), what is enqueued behind the jobs begins after them, and they
    // wait for the GEMM. A graph's branches are captured, and so listed, in this order, too.
    kernels::launch_gemm_combine_push(apart(p.combine), p.combine_variant, p.combine_blocks,
                                      lane_.main.get());
    if (per_job) {
      kernels::launch_wait_for_residency(p.combine, lane_.branch.get());
      kernels::launch_block_per_job(p.combine, lane_.branch.get());
      join_branch();
    }
  });
  mark(Kind::gemm_combine_push);
}

void Iteration::final_reduce() const {
  const auto range = step("final reduce");
  each([&](int rank) { kernels::launch_final_reduce(apart(plan(rank).reduce), lane_.main.get()); });
  mark(Kind::final_reduce);
}

// For NCCL the rank's own rows lie among the others. A row d of plane `rank` of what stands in for the
// staging buffer is row rank * T + d of the combined rows.
void Iteration::combine_rows(int rank) const {
  kernels::LayerArgs layer = plan(rank).layer;
  if (lane_.nccl != nullptr) {
    layer.shared[rank].staging = layer.combined;
  }
  kernels::launch_combine_rows(layer, lane_.main.get());
}

// This rank's own rows are in place: copy-in writes them there.
void Iteration::all_gather(int rank) const {
  const auto range = step("all-gather");
  const kernels::LayerArgs& a = plan(rank).layer;
  cudaStream_t stream = lane_.main.get();
  pace(plan(rank));
  if (lane_.nccl != nullptr) {
    lane_.nccl->all_gather(rank, a.copy_in_to, a.all_tokens, plane(a), stream);
  } else {
    kernels::launch_collect_rows(a, kernels::Collected::tokens, stream);
  }
  if (config_.link_gbps > 0) {
    join_branch();
  }
}

// NCCL writes the output. Else this rank's own plane is in place: combine writes it there.
void Iteration::reduce_scatter(int rank) const {
  const auto range = step("reduce-scatter");
  const kernels::LayerArgs& a = plan(rank).layer;
  cudaStream_t stream = lane_.main.get();
  pace(plan(rank));
  if (lane_.nccl != nullptr) {
    lane_.nccl->reduce_scatter(rank, a.combined, a.output, plane(a), stream);
  } else {
    kernels::launch_collect_rows(a, kernels::Collected::partials, stream);
  }
  if (config_.link_gbps > 0) {
    join_branch();
  }
}

// Beside the copies, a kernel that lasts as long as the emulated link would.
void Iteration::pace(const RankPlan& p) const {
  if (config_.link_gbps > 0) {
    const kernels::LayerArgs& a = p.layer;
    fork_branch();
    const double bytes = 2.0 * (a.ranks - 1) * a.tokens_per_rank * a.hidden;
    kernels::launch_pace(a.guard, bytes / config_.link_gbps, lane_.branch.get());
  }
}

// A kernel's arguments. Phases can be told apart only if none begins before the one before it has ended.
template <class Args>
Args Iteration::apart(const Args& given) const {
  Args args = given;
  if (marks_ != nullptr) {
    args.layer.launch = kernels::LaunchOrder::stream;
  }
  return args;
}

void Iteration::mark(Kind kind) const {
  if (marks_ != nullptr) {
    marks_->mark(kind, lane_.main.get());
  }
}

// What the host does for a step: its launches or, once per graph, their capture.
timeline::NvtxRange Iteration::step(const char* name) const {
  return {timeline::RangeLevel::step, name, lane_.device};
}

void Iteration::fork_branch() const {
  FUSESCOPE_CUDA(cudaEventRecord(lane_.fork.get(), lane_.main.get()));
  FUSESCOPE_CUDA(cudaStreamWaitEvent(lane_.branch.get(), lane_.fork.get()));
}

void Iteration::join_branch() const {
  FUSESCOPE_CUDA(cudaEventRecord(lane_.join.get(), lane_.branch.get()));
  FUSESCOPE_CUDA(cudaStreamWaitEvent(lane_.main.get(), lane_.join.get()));
}

}  // namespace fusescope::engine::cuda
