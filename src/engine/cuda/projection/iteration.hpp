#pragma once
// One iteration of the projection on one device, step by step, enqueued on its stream (directly, or while
// the stream is captured into a graph).
//
//   fused    seed counters, entry barrier, GEMM + push, reduce planes
//   serial   seed counters, entry barrier, GEMM, barrier, copies from the peers, reduce planes;
//            with NCCL: seed counters, GEMM, NCCL's reduce-scatter
//
// Ranks that share a device share its stream and go through it phase by phase, as in the layer
// (engine/cuda/iteration.hpp): a kernel that waits never holds SMs that the kernel it waits for needs.

#include <vector>

#include "engine/cuda/iteration.hpp"
#include "engine/cuda/projection/plan.hpp"

namespace fusescope::engine::cuda::projection {

class Iteration {
 public:
  // `plans`: by rank. All arguments outlive what is enqueued.
  Iteration(const std::vector<Plan>& plans, const Config& config, const Lane& lane);

  void enqueue() const;
  // Once the host has released the lane's start line, all ranks meet.
  void enqueue_start_line() const;

 private:
  void fused() const;
  void serial() const;
  void barrier(kernels::BarrierPoint point) const;
  void reduce_planes() const;
  void copy_from_peers(int rank) const;

  template <class Step>
  void each(Step step) const;
  template <class Step>
  void in_parts(Step step) const;
  const Plan& plan(int rank) const { return plans_[static_cast<std::size_t>(rank)]; }
  cudaStream_t stream() const { return lane_.main.get(); }

  const std::vector<Plan>& plans_;
  const Config& config_;
  const Lane& lane_;
};

}  // namespace fusescope::engine::cuda::projection
