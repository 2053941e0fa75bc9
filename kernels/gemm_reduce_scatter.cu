#include "kernels/gemm_reduce_scatter.cuh"

#include <algorithm>
#include <array>
#include <stdexcept>
#include <string>
#include <utility>

#include "kernels/resident_launch.hpp"
#include "kernels/row_math.cuh"

namespace fusescope::kernels {
namespace {

template <int Index, class Records>
void launch(const GemmReduceScatterArgs& args, int blocks, cudaStream_t stream) {
  constexpr GemmVariant V = kGemmVariants[Index];
  // Pushers of compute blocks reuse the ring and the staging chunks; the control area behind them stays.
  const long long wanted = push_bytes(args.push.pushers, args.push.rows, args.layer.hidden);
  if (wanted > bytes_for_pushes(V)) {
    throw std::invalid_argument(
        "gemm_reduce_scatter: " + std::to_string(args.push.pushers) + " pushers of " +
        std::to_string(args.push.rows) + " rows need " + std::to_string(wanted) +
        " bytes of shared memory, the GEMM leaves " + std::to_string(bytes_for_pushes(V)));
  }
  launch_resident(gemm_reduce_scatter_kernel<Index, Records>, "gemm_reduce_scatter", args, blocks,
                  kGemmThreads, shared_bytes(V), LaunchOrder::stream, stream);
}

using Launcher = void (*)(const GemmReduceScatterArgs&, int, cudaStream_t);

// A deferred tile is signalled a tile late, which only delays pushes.
template <int Index, class Records>
constexpr Launcher launcher() {
  if constexpr (kGemmVariants[Index].epilogue == Epilogue::kStore &&
                !kGemmVariants[Index].deferred && !kGemmVariants[Index].gathers) {
    return &launch<Index, Records>;
  } else {
    return nullptr;
  }
}

template <class Records, int... Index>
constexpr auto make_launchers(std::integer_sequence<int, Index...>) {
  return std::array<Launcher, sizeof...(Index)>{launcher<Index, Records>()...};
}

template <class Records>
constexpr auto kLaunchers = make_launchers<Records>(
    std::make_integer_sequence<int, static_cast<int>(kGemmVariants.size())>());

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

void launch_gemm_reduce_scatter(const GemmReduceScatterArgs& args, const GemmVariant& variant,
                                int blocks, cudaStream_t stream) {
  const int index = variant_index(variant);
  const auto& launchers = args.layer.is_recorded() ? kLaunchers<Recording> : kLaunchers<Silent>;
  const Launcher launcher = index < 0 ? nullptr : launchers.at(static_cast<std::size_t>(index));
  if (launcher == nullptr) {
    throw std::invalid_argument("gemm_reduce_scatter: " + to_string(variant) +
                                " is not built; plain stores are, not deferred");
  }
  launcher(args, blocks, stream);
}

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
