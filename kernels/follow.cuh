#pragma once
// Programmatic launches (resident_launch.hpp): what a kernel does that may begin while the one before it
// runs. Nothing of this has an effect in a kernel launched in stream order.
//
//   prologue           lets kernel 1 take the SMs that it leaves
//   kernel 1           waits for the prologue's end, then says that it has begun
//   kernel 2           begins on an SM when kernel 1's block there has ended. Its tiles wait for the
//                      activations of their row block; nothing else that it needs is made by kernel 1
//   final reduce       begins on an SM when kernel 2's block there has ended. It waits for watermarks
//
// Kernel 2 and the final reduce end after the kernel before them has, so that the end of the last kernel is
// the end of the iteration, as in stream order.

#include <cuda_runtime.h>

#include "kernels/bounded_wait.cuh"
#include "kernels/layer_args.hpp"

namespace fusescope::kernels {

// The kernel behind may begin where all blocks of this one have come here, or ended.
__device__ inline void let_next_begin() {
  cudaTriggerProgrammaticLaunchCompletion();
}

// By kernel 1. The kernel before has ended, and what it wrote is visible.
__device__ inline void follow_prologue(const LayerArgs& layer) {
  cudaGridDependencySynchronize();
  if (blockIdx.x == 0 && threadIdx.x == 0 && !layer.faults.loses(Wait::begun)) {
    // Passes what the line above made visible on to who acquires this.
    GpuAtomic<std::uint64_t>(layer.counters->begun)
        .store(layer.counters->iteration, cuda::memory_order_release);
  }
  let_next_begin();
}

// By all threads of a block of kernel 2, which meet on barrier 0. False: given up, in all threads.
//
// That this kernel runs means that kernel 1 runs, but orders none of the tables that the prologue wrote
// before this block's loads. Kernel 1's release does.
__device__ inline bool follow_kernel_1(const LayerArgs& layer) {
  let_next_begin();
  bool begun = true;
  if (threadIdx.x == 0) {
    // Not from a cache that may hold the last iteration's.
    const std::uint64_t iteration =
        GpuAtomic<std::uint64_t>(layer.counters->iteration).load(cuda::memory_order_relaxed);
    begun = wait_until_at_least(layer.guard, Wait::begun, -1, iteration, [&] {
      return GpuAtomic<std::uint64_t>(layer.counters->begun).load(cuda::memory_order_acquire);
    });
  }
  return __syncthreads_and(begun) != 0;
}

// Keeps the kernel from ending before the one before it. In the kernel's outermost scope, before anything
// else.
class EndsLast {
 public:
  __device__ explicit EndsLast(bool on) : on_(on) {}
  __device__ ~EndsLast() {
    if (on_)
      cudaGridDependencySynchronize();
  }
  EndsLast(const EndsLast&) = delete;
  EndsLast& operator=(const EndsLast&) = delete;

 private:
  bool on_;
};

}  // namespace fusescope::kernels
