#pragma once
// The gate of both kernels' GEMMs (gemm/gemm_hooks.cuh): a row block may be read once its counter has
// reached what opens it.

#include <cuda/ptx>

#include <cstdint>

#include "kernels/bounded_wait.cuh"
#include "kernels/layer_args.hpp"

namespace fusescope::kernels {

namespace ptx = cuda::ptx;

struct CounterGate {
  const Guard& guard;
  RowBlockCounter* counters;  // [row blocks]
  std::uint32_t open_at;      // 0: nothing is waited for
  Wait what;
  bool stopped;  // an earlier phase was aborted: no gate opens

  __device__ bool is_open(int row_block) const {
    if (stopped || open_at == 0)
      return !stopped;
    if (GpuAtomic<std::uint32_t>(counters[row_block].value).load(cuda::memory_order_acquire) <
        open_at)
      return false;
    cross_to_async_proxy();
    return true;
  }

  __device__ bool wait(int row_block) const {
    if (stopped || open_at == 0)
      return !stopped;
    if (!wait_for_counter(guard, what, row_block, counters[row_block].value, open_at))
      return false;
    cross_to_async_proxy();
    return true;
  }

 private:
  // The acquire orders the rows' stores before later generic accesses only; the loads that follow
  // are bulk tensor copies, where rows are not gathered. This orders the rows' stores before those.
  __device__ static void cross_to_async_proxy() { ptx::fence_proxy_async(ptx::space_global); }
};

// The signal of both kernels' GEMMs: counts finished tiles per row block.
struct CounterSignal {
  RowBlockCounter* counters;  // [row blocks]
  std::int32_t lost;          // row block whose first tile is not counted (Faults); -1 = none

  __device__ void done(int row_block, int n_tile) const {
    if (row_block == lost && n_tile == 0)
      return;
    // Orders the tile's stores, complete before this call, before a reader's acquire of the counter.
    GpuAtomic<std::uint32_t>(counters[row_block].value).fetch_add(1, cuda::memory_order_release);
  }
};

}  // namespace fusescope::kernels
