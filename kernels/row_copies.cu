#include "kernels/row_copies.hpp"

#include <algorithm>

#include "kernels/bounded_wait.cuh"
#include "kernels/cuda_check.hpp"
#include "kernels/recording.cuh"
#include "kernels/row_math.cuh"

namespace fusescope::kernels {
namespace {

constexpr int kThreads = 256;
constexpr int kMaxBlocks = 2048;
constexpr int kCollectBlocks = 128;

template <class Records>
__global__ void __launch_bounds__(kThreads)
    copy_in_kernel(const __grid_constant__ LayerArgs layer) {
  const typename Records::PhaseStamps stamps(layer.records, Phase::copy_in);
  const std::int64_t units = static_cast<std::int64_t>(layer.tokens_per_rank) * layer.hidden / 8;
  const auto* from = reinterpret_cast<const uint4*>(layer.input);
  auto* to = reinterpret_cast<uint4*>(layer.copy_in_to);
  const auto stride = static_cast<std::int64_t>(gridDim.x) * kThreads;
  for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x; i < units;
       i += stride)
    to[i] = from[i];
  if constexpr (Records::kOn)
    __syncthreads();
}

__global__ void __launch_bounds__(kThreads)
    scatter_rows_kernel(const __grid_constant__ LayerArgs layer) {
  for (int token = static_cast<int>(blockIdx.x); token < layer.tokens;
       token += static_cast<int>(gridDim.x)) {
    const std::int32_t* slots = layer.slots + static_cast<std::int64_t>(token) * layer.topk;
    const auto* row = reinterpret_cast<const uint4*>(
        layer.all_tokens + static_cast<std::int64_t>(token) * layer.hidden);
    for (int unit = static_cast<int>(threadIdx.x); unit < layer.hidden / 8; unit += kThreads) {
      const uint4 value = row[unit];
      for (int k = 0; k < layer.topk; ++k) {
        reinterpret_cast<uint4*>(layer.gathered +
                                 static_cast<std::int64_t>(slots[k]) * layer.hidden)[unit] = value;
      }
    }
  }
}

// Rows of this rank's own tokens go straight into its own plane.
__device__ Bf16* combined_row(const LayerArgs& layer, int token) {
  const bool own = layer.source_rank(token) == layer.rank;
  const std::int64_t plane = static_cast<std::int64_t>(layer.tokens_per_rank) * layer.hidden;
  const int t = token - layer.rank * layer.tokens_per_rank;
  return own ? layer.mine().staging + layer.rank * plane +
                   static_cast<std::int64_t>(t) * layer.hidden
             : layer.combined + static_cast<std::int64_t>(token) * layer.hidden;
}

__global__ void __launch_bounds__(kThreads)
    combine_rows_kernel(const __grid_constant__ LayerArgs layer) {
  for (int token = static_cast<int>(blockIdx.x); token < layer.tokens;
       token += static_cast<int>(gridDim.x)) {
    combine_row(layer, token, static_cast<int>(threadIdx.x), kThreads,
                reinterpret_cast<uint4*>(combined_row(layer, token)));
  }
}

// Grid: blocks x other ranks. Which rank comes first differs from rank to rank, so that no source has to
// serve all of them at once.
__global__ void __launch_bounds__(kThreads)
    collect_rows_kernel(const __grid_constant__ LayerArgs layer, Collected what) {
  const int from = (layer.rank + 1 + static_cast<int>(blockIdx.y)) % layer.ranks;
  const std::int64_t plane = static_cast<std::int64_t>(layer.tokens_per_rank) * layer.hidden;
  const bool tokens = what == Collected::tokens;
  const Bf16* source =
      tokens ? layer.shared[from].tokens : layer.shared[from].partials + layer.rank * plane;
  Bf16* target = (tokens ? layer.all_tokens : layer.mine().staging) + from * plane;
  const auto* row = reinterpret_cast<const uint4*>(source);
  auto* to = reinterpret_cast<uint4*>(target);
  const std::int64_t units = plane / 8;
  const auto stride = static_cast<std::int64_t>(gridDim.x) * kThreads;
  constexpr int kInFlight = 4;  // loads of a thread, over a link of a microsecond's latency
  for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x; i < units;
       i += stride * kInFlight) {
    uint4 values[kInFlight];
#pragma unroll
    for (int n = 0; n < kInFlight; ++n) {
      if (i + n * stride < units)
        values[n] = __ldcg(row + i + n * stride);
    }
#pragma unroll
    for (int n = 0; n < kInFlight; ++n) {
      if (i + n * stride < units)
        to[i + n * stride] = values[n];
    }
  }
}

__global__ void pace_kernel(const __grid_constant__ Guard guard, std::uint64_t ns) {
  wait_for_clock(guard, -1, now_ns() + ns);
}

int row_grid(const LayerArgs& layer) {
  return std::min(layer.tokens, kMaxBlocks);
}

}  // namespace

void launch_copy_in(const LayerArgs& layer, cudaStream_t stream) {
  const auto kernel = layer.is_recorded() ? copy_in_kernel<Recording> : copy_in_kernel<Silent>;
  kernel<<<std::min(layer.tokens_per_rank, kMaxBlocks), kThreads, 0, stream>>>(layer);
  FUSESCOPE_CUDA(cudaGetLastError());
}

void launch_scatter_rows(const LayerArgs& layer, cudaStream_t stream) {
  scatter_rows_kernel<<<row_grid(layer), kThreads, 0, stream>>>(layer);
  FUSESCOPE_CUDA(cudaGetLastError());
}

void launch_collect_rows(const LayerArgs& layer, Collected what, cudaStream_t stream) {
  if (layer.ranks == 1)
    return;
  const int peers = layer.ranks - 1;
  const dim3 grid(static_cast<unsigned>(std::max(kCollectBlocks / peers, 16)),
                  static_cast<unsigned>(peers));
  collect_rows_kernel<<<grid, kThreads, 0, stream>>>(layer, what);
  FUSESCOPE_CUDA(cudaGetLastError());
}

void launch_combine_rows(const LayerArgs& layer, cudaStream_t stream) {
  combine_rows_kernel<<<row_grid(layer), kThreads, 0, stream>>>(layer);
  FUSESCOPE_CUDA(cudaGetLastError());
}

void launch_pace(const Guard& guard, double ns, cudaStream_t stream) {
  pace_kernel<<<1, 1, 0, stream>>>(guard, static_cast<std::uint64_t>(ns));
  FUSESCOPE_CUDA(cudaGetLastError());
}

}  // namespace fusescope::kernels
