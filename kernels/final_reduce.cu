#include "kernels/final_reduce.hpp"

#include <algorithm>

#include "kernels/bounded_wait.cuh"
#include "kernels/cuda_check.hpp"
#include "kernels/row_math.cuh"

namespace fusescope::kernels {
namespace {

constexpr int kThreads = 256;
constexpr int kMaxBlocks = 1024;

// Every sender's watermark of this chunk, by one thread per sender; all threads learn the outcome.
__device__ bool wait_for_chunk(const FinalReduceArgs& args, int chunk) {
  const LayerArgs& layer = args.layer;
  bool raised = true;
  if (static_cast<int>(threadIdx.x) < layer.ranks) {
    // Acquires at system scope what the elected job released: orders the sender's rows, written to
    // this GPU's memory, before the loads of the sum, here and, through the barrier, in all threads.
    raised =
        wait_for_flag(layer.guard, Wait::watermark, static_cast<int>(threadIdx.x),
                      layer.mine().flags->watermark[threadIdx.x][chunk], layer.counters->iteration);
  }
  return __syncthreads_and(raised) != 0;
}

__device__ void sum_planes(const LayerArgs& layer, int t) {
  for (int unit = static_cast<int>(threadIdx.x); unit < layer.hidden / 8; unit += kThreads) {
    float sum[8] = {};
    for (int r = 0; r < layer.ranks; ++r) {
      const Bf16* row = layer.mine().staging +
                        (static_cast<std::int64_t>(r) * layer.tokens_per_rank + t) * layer.hidden;
      accumulate(sum, 1.0f, __ldcg(reinterpret_cast<const uint4*>(row) + unit));
    }
    reinterpret_cast<uint4*>(layer.output + static_cast<std::int64_t>(t) * layer.hidden)[unit] =
        round_to_bf16(sum);
  }
}

__global__ void __launch_bounds__(kThreads)
    final_reduce_kernel(const __grid_constant__ FinalReduceArgs args) {
  int seen = -1;  // chunks come in order
  for (int t = static_cast<int>(blockIdx.x); t < args.layer.tokens_per_rank;
       t += static_cast<int>(gridDim.x)) {
    const int chunk = args.layer.chunk_of(t, args.watermark_chunks);
    if (args.waits && chunk != seen) {
      if (!wait_for_chunk(args, chunk))
        return;
      seen = chunk;
    }
    sum_planes(args.layer, t);
  }
}

}  // namespace

void launch_final_reduce(const FinalReduceArgs& args, cudaStream_t stream) {
  final_reduce_kernel<<<std::min(args.layer.tokens_per_rank, kMaxBlocks), kThreads, 0, stream>>>(
      args);
  FUSESCOPE_CUDA(cudaGetLastError());
}

}  // namespace fusescope::kernels
