#include "kernels/final_reduce.hpp"

#include <algorithm>

#include "kernels/bounded_wait.cuh"
#include "kernels/follow.cuh"
#include "kernels/recording.cuh"
#include "kernels/resident_launch.hpp"
#include "kernels/row_math.cuh"

namespace fusescope::kernels {
namespace {

// So few threads that 1024 blocks run at once, with records, too.
constexpr int kThreads = 128;
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

// Two units of a row at once, of two planes at once: four loads under way. The planes are added in the order of their
// ranks.
__device__ void sum_planes(const LayerArgs& layer, int t) {
  constexpr int kAtOnce = 2;
  const int units = layer.hidden / 8;
  const std::int64_t plane_units = static_cast<std::int64_t>(layer.tokens_per_rank) * units;
  const auto* first =
      reinterpret_cast<const uint4*>(layer.mine().staging) + static_cast<std::int64_t>(t) * units;
  auto* output = reinterpret_cast<uint4*>(layer.output) + static_cast<std::int64_t>(t) * units;
  for (int base = static_cast<int>(threadIdx.x); base < units; base += kAtOnce * kThreads) {
    float sums[kAtOnce][8] = {};
    for (int r = 0; r < layer.ranks; r += kAtOnce) {
      uint4 rows[kAtOnce][kAtOnce];
#pragma unroll
      for (int i = 0; i < kAtOnce; ++i) {
#pragma unroll
        for (int p = 0; p < kAtOnce; ++p) {
          if (base + i * kThreads < units && r + p < layer.ranks)
            rows[i][p] = __ldcg(first + (r + p) * plane_units + base + i * kThreads);
        }
      }
#pragma unroll
      for (int i = 0; i < kAtOnce; ++i) {
#pragma unroll
        for (int p = 0; p < kAtOnce; ++p) {
          if (r + p < layer.ranks)
            accumulate(sums[i], 1.0f, rows[i][p]);
        }
      }
    }
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i) {
      if (base + i * kThreads < units)
        output[base + i * kThreads] = round_to_bf16(sums[i]);
    }
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
