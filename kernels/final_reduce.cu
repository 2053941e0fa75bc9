#include "kernels/final_reduce.hpp"

#include <algorithm>

#include "kernels/bounded_wait.cuh"
#include "kernels/follow.cuh"
#include "kernels/recording.cuh"
#include "kernels/resident_launch.hpp"
#include "kernels/row_math.cuh"

namespace fusescope::kernels {
namespace {

constexpr int kThreads = 256;
constexpr int kMaxBlocks = 1024;

// Every sender's watermark of this chunk, by one thread per sender; all threads learn the outcome.
template <class Writer>
__device__ bool wait_for_chunk(const FinalReduceArgs& args, int chunk, Writer& writer) {
  const LayerArgs& layer = args.layer;
  bool raised = true;
  if (static_cast<int>(threadIdx.x) < layer.ranks) {
    writer.record(Point::watermark_wait_begin, static_cast<int>(threadIdx.x), chunk);
    // Acquires at system scope what the elected job released: orders the sender's rows, written to
    // this GPU's memory, before the loads of the sum, here and, through the barrier, in all threads.
    // Read past the caches: this kernel may have begun before another ended that orders the word before it.
    const std::uint64_t iteration =
        GpuAtomic<std::uint64_t>(layer.counters->iteration).load(cuda::memory_order_relaxed);
    raised = wait_for_flag(layer.guard, Wait::watermark, static_cast<int>(threadIdx.x),
                           layer.mine().flags->watermark[threadIdx.x][chunk], iteration);
    writer.record(Point::watermark_seen, static_cast<int>(threadIdx.x), chunk);
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

// By the block's first thread: the rows of a chunk that this block sums.
template <class Records>
class ReducedChunk {
 public:
  __device__ explicit ReducedChunk(typename Records::Writer& writer) : writer_(writer) {}

  __device__ void begin(int chunk) {
    if constexpr (Records::kOn) {
      chunk_ = chunk;
      if (threadIdx.x == 0)
        writer_.record(Point::reduce_begin, -1, chunk);
    }
  }
  __device__ void end() {
    if constexpr (Records::kOn) {
      if (chunk_ < 0)
        return;
      __syncthreads();
      if (threadIdx.x == 0)
        writer_.record(Point::reduce_end, -1, chunk_);
    }
  }

 private:
  typename Records::Writer& writer_;
  int chunk_ = -1;
};

template <class Records>
__global__ void __launch_bounds__(kThreads)
    final_reduce_kernel(const __grid_constant__ FinalReduceArgs args) {
  const EndsLast ends_last(args.layer.launch == LaunchOrder::programmatic);
  const typename Records::PhaseStamps stamps(args.layer.records, Phase::final_reduce);
  typename Records::Writer writer(args.layer.records, Family::reduce, static_cast<int>(blockIdx.x),
                                  static_cast<int>(threadIdx.x));
  ReducedChunk<Records> reduced(writer);
  int seen = -1;  // chunks come in order
  for (int t = static_cast<int>(blockIdx.x); t < args.layer.tokens_per_rank;
       t += static_cast<int>(gridDim.x)) {
    const int chunk = args.layer.chunk_of(t, args.watermark_chunks);
    if (args.waits && chunk != seen) {
      reduced.end();
      if (!wait_for_chunk(args, chunk, writer))
        return;
      seen = chunk;
      reduced.begin(chunk);
    }
    sum_planes(args.layer, t);
  }
  reduced.end();
}

}  // namespace

int final_reduce_blocks(int tokens_per_rank) {
  return std::min(tokens_per_rank, kMaxBlocks);
}

void launch_final_reduce(const FinalReduceArgs& args, cudaStream_t stream) {
  const auto kernel =
      args.layer.is_recorded() ? final_reduce_kernel<Recording> : final_reduce_kernel<Silent>;
  cudaLaunchAttribute programmatic = launch_attribute(LaunchOrder::programmatic);
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(static_cast<unsigned>(final_reduce_blocks(args.layer.tokens_per_rank)));
  config.blockDim = dim3(kThreads);
  config.stream = stream;
  config.attrs = &programmatic;
  config.numAttrs = args.layer.launch == LaunchOrder::programmatic ? 1 : 0;
  FUSESCOPE_CUDA(cudaLaunchKernelEx(&config, kernel, args));
}

}  // namespace fusescope::kernels
