#pragma once
// One iteration of the layer on one device, step by step, enqueued on its stream (directly, or while
// the stream is captured into a graph).
//
// With one rank per device this is the rank's iteration. Ranks that share a device share its stream
// and go through it phase by phase: every kernel of a phase ends before the next phase begins, and
// what a rank tells its peers goes out for all ranks of the device before any of them waits. So a
// kernel that waits never holds SMs that the kernel it waits for needs; across devices, each wait is
// for something that the other device does without waiting for this one.

#include <vector>

#include "engine/cuda/collectives.hpp"
#include "engine/cuda/layer_memory.hpp"
#include "engine/cuda/phase_marks.hpp"
#include "engine/cuda/plan.hpp"
#include "engine/cuda/start_line.hpp"
#include "kernels/device_barrier.hpp"
#include "layer/config.hpp"
#include "timeline/collect/nvtx.hpp"

namespace fusescope::engine::cuda {

// A device's streams: `main` in program order; `branch` forks from it and joins again. Made while the
// device is current.
struct Lane {
  int device = 0;
  std::vector<int> ranks;  // that live on this device and take part
  kernels::Stream main;
  kernels::Stream branch;
  kernels::CudaEvent fork;
  kernels::CudaEvent join;
  const NcclCollectives* nccl = nullptr;  // of the serial layer; null = peer copies
  StartLine start;
};

class Iteration {
 public:
  // `plans`: by rank, of the lane's ranks at least. `marks`: null, or where the ends of phases are
  // recorded. All arguments outlive what is enqueued.
  Iteration(const LayerMemory& memory, const Config& config, const std::vector<RankPlan>& plans,
            const Lane& lane, PhaseMarks* marks);

  // What a timed iteration does. For a study: the two kernels and what lies between.
  void enqueue() const;
  // What a study needs beforehand, untimed: tables and seeded counters. Nothing for the full layer.
  void enqueue_preparation() const;
  // Once the host has released the lane's start line, all ranks meet.
  void enqueue_start_line() const;

 private:
  void fused() const;
  void serial() const;
  void before_kernels() const;
  void prologue() const;
  void exchange_and_schedule() const;
  void build_schedule() const;
  void build_schedule_on_host(int rank) const;
  void copy_in() const;
  void copy_in_between_barriers() const;
  void barrier(kernels::BarrierPoint point) const;
  void dispatch_gemm() const;
  void activation() const;
  void gemm_combine_push() const;
  void final_reduce() const;
  void combine_rows(int rank) const;
  void all_gather(int rank) const;
  void reduce_scatter(int rank) const;
  void pace(const RankPlan& plan) const;
  void mark(timeline::Kind kind) const;
  timeline::NvtxRange step(const char* name) const;
  void join_branch() const;
  void fork_branch() const;

  template <class Step>
  void each(Step step) const;
  template <class Step>
  void in_parts(Step step) const;
  template <class Args>
  Args apart(const Args& given) const;
  const RankPlan& plan(int rank) const { return plans_[static_cast<std::size_t>(rank)]; }

  const LayerMemory& memory_;
  const Config& config_;
  const std::vector<RankPlan>& plans_;
  const Lane& lane_;
  PhaseMarks* marks_;
};

}  // namespace fusescope::engine::cuda
