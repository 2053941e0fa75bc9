#include "kernels/ids_exchange.hpp"

#include "kernels/bounded_wait.cuh"
#include "kernels/cuda_check.hpp"
#include "kernels/recording.cuh"

namespace fusescope::kernels {
namespace {

constexpr int kThreads = 1024;

// 16 bytes at a time where both ends allow it (T*K words per rank: they do unless T*K is odd).
__device__ void copy_words(std::uint32_t* to, const std::uint32_t* from, int words) {
  const bool wide =
      (reinterpret_cast<std::uintptr_t>(to) | reinterpret_cast<std::uintptr_t>(from)) % 16 == 0;
  const int quads = wide ? words / 4 : 0;
  for (int i = static_cast<int>(threadIdx.x); i < quads; i += kThreads)
    reinterpret_cast<uint4*>(to)[i] = reinterpret_cast<const uint4*>(from)[i];
  for (int i = quads * 4 + static_cast<int>(threadIdx.x); i < words; i += kThreads)
    to[i] = from[i];
}

template <class Records>
__global__ void __launch_bounds__(kThreads)
    ids_exchange_kernel(const __grid_constant__ LayerArgs layer, Part part) {
  const typename Records::PhaseStamps stamps(layer.records, Phase::ids_exchange);
  const int peer = static_cast<int>(blockIdx.x);
  const std::uint64_t iteration = layer.counters->iteration + 1;  // counts once the ids are here
  if (part.arrive) {
    const Shared& to = layer.shared[peer];
    const int words = layer.tokens_per_rank * layer.topk;
    const std::int64_t first = static_cast<std::int64_t>(layer.rank) * words;
    copy_words(reinterpret_cast<std::uint32_t*>(to.ids + first),
               reinterpret_cast<const std::uint32_t*>(layer.own_ids), words);
    copy_words(reinterpret_cast<std::uint32_t*>(to.weights + first),
               reinterpret_cast<const std::uint32_t*>(layer.own_weights), words);
    __syncthreads();
    if (threadIdx.x == 0 && !layer.faults.loses(Wait::ids)) {
      // Releases the block's stores, joined by the barrier above, to the peer's acquire of the flag.
      raise_flag(to.flags->ids[layer.rank], iteration);
    }
  }
  if (part.wait && threadIdx.x == 0)
    wait_for_flag(layer.guard, Wait::ids, peer, layer.mine().flags->ids[peer], iteration);
}

__global__ void __launch_bounds__(kThreads)
    unstamp_ids_kernel(const __grid_constant__ LayerArgs layer) {
  const Shared& mine = layer.mine();
  const int hits = layer.tokens * layer.topk;
  const int stride = static_cast<int>(gridDim.x) * kThreads;
  for (int i = static_cast<int>(blockIdx.x) * kThreads + static_cast<int>(threadIdx.x); i < hits;
       i += stride)
    mine.ids[i] = static_cast<std::int32_t>(id_of(mine.stamped_ids[i]));
}

}  // namespace

void launch_ids_exchange(const LayerArgs& layer, Part part, cudaStream_t stream) {
  const auto kernel =
      layer.is_recorded() ? ids_exchange_kernel<Recording> : ids_exchange_kernel<Silent>;
  kernel<<<layer.ranks, kThreads, 0, stream>>>(layer, part);
  FUSESCOPE_CUDA(cudaGetLastError());
}

void launch_unstamp_ids(const LayerArgs& layer, cudaStream_t stream) {
  constexpr int kBlocks = 32;
  unstamp_ids_kernel<<<kBlocks, kThreads, 0, stream>>>(layer);
  FUSESCOPE_CUDA(cudaGetLastError());
}

}  // namespace fusescope::kernels
