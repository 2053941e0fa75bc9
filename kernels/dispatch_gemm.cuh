#pragma once
// Device side of kernel 1: the two roles. A row block may be read once 128 of its rows have arrived, padding
// included; who reads its activations waits for its tiles.

#include "kernels/background_fetch.cuh"
#include "kernels/communication.cuh"
#include "kernels/counter_gate.cuh"
#include "kernels/dispatch_gemm.hpp"
#include "kernels/follow.cuh"
#include "kernels/gemm/grouped_gemm.cuh"
#include "kernels/recording.cuh"
#include "kernels/sm_clock.cuh"

namespace fusescope::kernels {

// The gate of a block that fetches tokens beside its tiles.
template <class Fetch>
struct FetchingGate : CounterGate {
  Fetch fetch;

  __device__ bool work() { return fetch.step(); }
};

// The variant travels as its index: nvcc takes no class-typed template arguments on kernels.
template <int Index, class Records>
__global__ void __launch_bounds__(gemm_threads(kGemmVariants[Index]), 1)
    dispatch_gemm_kernel(const __grid_constant__ DispatchGemmArgs args) {
  extern __shared__ __align__(1024) unsigned char smem[];
  const int block = static_cast<int>(blockIdx.x);
  if (args.layer.launch == LaunchOrder::programmatic)
    follow_prologue(args.layer);
  const SmClock clock(args.layer.clock);
  const typename Records::PhaseStamps stamps(args.layer.records, Phase::dispatch_gemm);
  const int blocks = static_cast<int>(gridDim.x);
  using Communicates = Communication<Records, kGemmVariants[Index].gathers>;
  if (block < args.compute_blocks) {
    if (args.fetches_first) {
      const bool fetched =
          Communicates{args.layer, smem, args.tokens_per_block, block, blocks, args.head}.run();
      // Orders all slots' uses of shared memory before the GEMM's ring. Barrier 0 is free: the GEMM
      // has one of its own. Every thread gets the same answer, which no look at the abort word would
      // give: a block goes on to the GEMM whole or not at all.
      if (__syncthreads_and(fetched) == 0)
        return;
    }
    const LayerArgs& layer = args.layer;
    CounterGate gate{layer.guard, layer.arrivals, args.open_at, Wait::gate, aborted(layer.guard)};
    CounterSignal signal{layer.computed, layer.faults.lost_activations};
    typename Records::TileProbe probe(args.layer.records, Family::dispatch_tiles, block,
                                      copy_thread(kGemmVariants[Index]));
    constexpr int kRoom = work_bytes(kGemmVariants[Index]);
    if constexpr (kRoom > 0) {
      using Fetch = BackgroundFetch<Records, kRoom>;
      using State = typename Fetch::State;
      __shared__ alignas(State) unsigned char state[sizeof(State)];
      // Ordered before the first step by the GEMM's own barrier.
      if (threadIdx.x == 0) {
        const int first = args.fetches_first ? args.head + block : layer.tokens;
        Fetch::init(layer, state, first, block, args.tokens_per_block);
      }
      FetchingGate<Fetch> fetching{gate, Fetch(layer, *reinterpret_cast<State*>(state),
                                               smem + work_at(kGemmVariants[Index]), blocks)};
      grouped_gemm<kGemmVariants[Index]>(args.gemm, smem, fetching, signal, probe, block,
                                         args.compute_blocks);
    } else {
      grouped_gemm<kGemmVariants[Index]>(args.gemm, smem, gate, signal, probe, block,
                                         args.compute_blocks);
    }
  } else {
    Communicates{args.layer,
                 smem,
                 args.tokens_per_block,
                 block - args.compute_blocks,
                 blocks - args.compute_blocks,
                 args.layer.tokens}
        .run();
  }
}

}  // namespace fusescope::kernels
