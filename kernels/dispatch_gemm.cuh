#pragma once
// Device side of kernel 1: the gate, and the two roles.

#include "kernels/communication.cuh"
#include "kernels/dispatch_gemm.hpp"
#include "kernels/gemm/grouped_gemm.cuh"
#include "kernels/recording.cuh"
#include "kernels/sm_clock.cuh"

namespace fusescope::kernels {

// A row block may be read once 128 of its rows have arrived, padding included.
struct ArrivalGate {
  const LayerArgs& layer;
  std::uint32_t open_at;
  bool stopped;  // an earlier phase was aborted: no gate opens

  __device__ bool is_open(int row_block) const {
    if (stopped)
      return false;
    if (GpuAtomic<std::uint32_t>(layer.arrivals[row_block]).load(cuda::memory_order_acquire) <
        open_at)
      return false;
    cross_to_async_proxy();
    return true;
  }

  __device__ bool wait(int row_block) const {
    if (stopped ||
        !wait_for_counter(layer.guard, Wait::gate, row_block, layer.arrivals[row_block], open_at))
      return false;
    cross_to_async_proxy();
    return true;
  }

 private:
  // The acquire orders the rows' stores before later generic accesses only; the loads that follow
  // are bulk tensor copies. This orders the rows' stores before those.
  __device__ static void cross_to_async_proxy() { ptx::fence_proxy_async(ptx::space_global); }
};

// The variant travels as its index: nvcc takes no class-typed template arguments on kernels.
template <int Index, class Records>
__global__ void __launch_bounds__(gemm_threads(kGemmVariants[Index]), 1)
    dispatch_gemm_kernel(const __grid_constant__ DispatchGemmArgs args) {
  extern __shared__ __align__(1024) unsigned char smem[];
  const int block = static_cast<int>(blockIdx.x);
  const SmClock clock(args.layer.clock);
  const typename Records::PhaseStamps stamps(args.layer.records, Phase::dispatch_gemm);
  const int blocks = static_cast<int>(gridDim.x);
  if (block < args.compute_blocks) {
    if (args.fetches_first) {
      const bool fetched =
          Communication<Records>{args.layer, smem, args.tokens_per_block, block, blocks}.run();
      // Orders all slots' uses of shared memory before the GEMM's ring. Barrier 0 is free: the GEMM
      // has one of its own. Every thread gets the same answer, which no look at the abort word would
      // give: a block goes on to the GEMM whole or not at all.
      if (__syncthreads_and(fetched) == 0)
        return;
    }
    ArrivalGate gate{args.layer, args.open_at, aborted(args.layer.guard)};
    NoSignal signal;
    typename Records::TileProbe probe(args.layer.records, Family::dispatch_tiles, block,
                                      copy_thread(kGemmVariants[Index]));
    grouped_gemm<kGemmVariants[Index]>(args.gemm, smem, gate, signal, probe, block,
                                       args.compute_blocks);
  } else {
    Communication<Records>{args.layer, smem, args.tokens_per_block, block - args.compute_blocks,
                           blocks - args.compute_blocks}
        .run();
  }
}

}  // namespace fusescope::kernels
