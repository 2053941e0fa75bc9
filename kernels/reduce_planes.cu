// The third kernel's last step: the sum of the planes.
#include <algorithm>

#include "kernels/bounded_wait.cuh"
#include "kernels/cuda_check.hpp"
#include "kernels/gemm_reduce_scatter.hpp"
#include "kernels/recording.cuh"
#include "kernels/row_math.cuh"

namespace fusescope::kernels {
namespace {

constexpr int kReduceThreads = 256;
constexpr int kMaxReduceBlocks = 1024;

// The other senders' watermarks of this chunk, by one thread per sender; all threads learn the outcome.
template <class Writer>
__device__ bool wait_for_chunk(const ReducePlanesArgs& args, int chunk, Writer& writer) {
  const LayerArgs& layer = args.layer;
  const int sender = static_cast<int>(threadIdx.x);
  bool raised = true;
  if (sender < layer.ranks && sender != layer.rank) {
    writer.record(Point::watermark_wait_begin, sender, chunk);
    // Acquires at system scope what the elected pusher released: orders the sender's rows, written to
    // this GPU's memory, before the loads of the sum, here and, through the barrier, in all threads.
    raised = wait_for_flag(layer.guard, Wait::watermark, sender,
                           layer.mine().flags->watermark[sender][chunk], layer.counters->iteration);
    writer.record(Point::watermark_seen, sender, chunk);
  }
  return __syncthreads_and(raised) != 0;
}

__device__ const Bf16* plane_of(const ReducePlanesArgs& args, int sender) {
  const LayerArgs& layer = args.layer;
  const std::int64_t plane = static_cast<std::int64_t>(layer.tokens_per_rank) * layer.hidden;
  if (sender == layer.rank)
    return layer.partial + segment_of(args.row_order, layer.rank, layer.ranks, layer.rank) * plane;
  return layer.mine().staging + sender * plane;
}

__device__ void sum_row(const ReducePlanesArgs& args, int t) {
  const LayerArgs& layer = args.layer;
  const std::int64_t row = static_cast<std::int64_t>(t) * layer.hidden;
  for (int unit = static_cast<int>(threadIdx.x); unit < layer.hidden / 8; unit += kReduceThreads) {
    float sum[8] = {};
    for (int r = 0; r < layer.ranks; ++r)
      accumulate(sum, 1.0f, __ldcg(reinterpret_cast<const uint4*>(plane_of(args, r) + row) + unit));
    reinterpret_cast<uint4*>(layer.output + row)[unit] = round_to_bf16(sum);
  }
}

// The rows of a chunk that this block has summed are written. By the block's first thread.
template <class Records>
__device__ void record_sum_end(typename Records::Writer& writer, int chunk) {
  if constexpr (Records::kOn) {
    if (chunk < 0)
      return;
    __syncthreads();
    if (threadIdx.x == 0)
      writer.record(Point::reduce_end, -1, chunk);
  }
}

template <class Records>
__global__ void __launch_bounds__(kReduceThreads)
    reduce_planes_kernel(const __grid_constant__ ReducePlanesArgs args) {
  const typename Records::PhaseStamps stamps(args.layer.records, Phase::final_reduce);
  typename Records::Writer writer(args.layer.records, Family::reduce, static_cast<int>(blockIdx.x),
                                  static_cast<int>(threadIdx.x));
  int seen = -1;  // chunks come in order
  for (int t = static_cast<int>(blockIdx.x); t < args.layer.tokens_per_rank;
       t += static_cast<int>(gridDim.x)) {
    const int chunk = args.layer.chunk_of(t, args.watermark_chunks);
    if (args.waits && chunk != seen) {
      record_sum_end<Records>(writer, seen);
      if (!wait_for_chunk(args, chunk, writer))
        return;
      seen = chunk;
      if (threadIdx.x == 0)
        writer.record(Point::reduce_begin, -1, chunk);
    }
    sum_row(args, t);
  }
  record_sum_end<Records>(writer, seen);
}

}  // namespace

int reduce_planes_blocks(int tokens_per_rank) {
  return std::min(tokens_per_rank, kMaxReduceBlocks);
}

void launch_reduce_planes(const ReducePlanesArgs& args, cudaStream_t stream) {
  const auto kernel =
      args.layer.is_recorded() ? reduce_planes_kernel<Recording> : reduce_planes_kernel<Silent>;
  kernel<<<reduce_planes_blocks(args.layer.tokens_per_rank), kReduceThreads, 0, stream>>>(args);
  FUSESCOPE_CUDA(cudaGetLastError());
}

}  // namespace fusescope::kernels
