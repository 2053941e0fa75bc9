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

// The gate of a block that fetches its share of the tokens before its first tile.
template <class Communicates>
struct FetchingGate : CounterGate {
  Communicates head;
  bool fetches;

  // Where a pull is given up, the launch is being aborted: the block's own gates see that.
  __device__ void prepare() const {
    if (fetches)
      head.run();
  }
};

// And of one that fetches tokens beside its tiles.
template <class Communicates, class Fetch>
struct FetchingBesideGate : FetchingGate<Communicates> {
  Fetch rest;

  __device__ bool work() { return rest.step(); }
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
  constexpr GemmVariant V = kGemmVariants[Index];
  using Communicates = Communication<Records, V.gathers>;
  const LayerArgs& layer = args.layer;
  if (block >= args.compute_blocks) {
    const int warps = static_cast<int>(blockDim.x) / 32;
    Communicates{layer,
                 smem,
                 args.tokens_per_block,
                 block - args.compute_blocks,
                 blocks - args.compute_blocks,
                 layer.tokens,
                 warps}
        .run();
    return;
  }
  const FetchingGate<Communicates> gate{
      {layer.guard, layer.arrivals, args.open_at, Wait::gate, aborted(layer.guard)},
      {layer, smem, args.tokens_per_block, block, blocks, args.head, copy_thread(V) / 32},
      args.fetches_first};
  CounterSignal signal{layer.computed, layer.faults.lost_activations};
  typename Records::TileProbe probe(layer.records, Family::dispatch_tiles, block, copy_thread(V));
  constexpr int kRoom = work_bytes(V);
  if constexpr (kRoom > 0) {
    using Fetch = BackgroundFetch<Records, kRoom>;
    using State = typename Fetch::State;
    __shared__ alignas(State) unsigned char state[sizeof(State)];
    // Ordered before the first step by the GEMM's own barrier.
    if (threadIdx.x == 0) {
      const int first = args.fetches_first ? args.head + block : layer.tokens;
      Fetch::init(layer, state, first, block, args.tokens_per_block);
    }
    FetchingBesideGate<Communicates, Fetch> both{
        gate, Fetch(layer, *reinterpret_cast<State*>(state), smem + work_at(V), blocks)};
    grouped_gemm<V>(args.gemm, smem, both, signal, probe, block, args.compute_blocks);
  } else {
    grouped_gemm<V>(args.gemm, smem, gate, signal, probe, block, args.compute_blocks);
  }
}

}  // namespace fusescope::kernels
