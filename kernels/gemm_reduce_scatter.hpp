#pragma once
// The third kernel: dense GEMM + ReduceScatter, attention's output projection under tensor parallelism.
//
//   out[d, :] = sum over ranks r of  x_r[d, K/R] * W_r[H, K/R]^T       d = 0 .. R*T - 1
//
// and each rank ends with its own T rows. One cooperative launch, one block per SM: blocks below
// `compute_blocks` run the GEMM (the grouped one, with one expert) and, with all hands, then join the
// pushes; the other blocks push from the start. The last step sums what arrived, in rank order.
//
// Rows are in this rank's slot order: R segments of T rows, one per destination, and padding at the very
// end. A row block may hold rows of two destinations. A rank's own rows are not pushed: the last step reads
// them where the GEMM wrote them.
//
// In: rows [R*T padded to 128, K/R] in slot order, counters seeded. Out: this rank's plane on every other
// rank, and its watermarks there; then output [T, H].
//
// Of LayerArgs these kernels use sizes, `partial`, `done`, `counters`, `output`, `shared` (staging, flags;
// serial form: partials), guard and faults. Why no buffer is reused too early: layer_args.hpp, for staging;
// everything else is the rank's own. In the serial form peers read `partial`: it is written again after the
// entry barrier of the next iteration, at which they arrive when they have read it.

#include <cuda_runtime_api.h>

#include "kernels/gemm/gemm_args.hpp"
#include "kernels/gemm/gemm_variants.hpp"
#include "kernels/layer_args.hpp"

namespace fusescope::kernels {

// Which destination's rows a rank computes first. `by_rank`: all ranks compute, and push, rank 0's rows
// first, and rank 0's ingress is the bottleneck. `rotate_from_self`: the next rank's first and its own
// last, so that no two ranks push to the same one, and nothing is left to push after the last tiles.
enum class RowOrder : std::int32_t { rotate_from_self, by_rank };

constexpr int segment_of(RowOrder order, int rank, int ranks, int destination) {
  return order == RowOrder::by_rank ? destination : (destination - rank - 1 + ranks) % ranks;
}
constexpr int destination_of(RowOrder order, int rank, int ranks, int segment) {
  return order == RowOrder::by_rank ? segment : (rank + 1 + segment) % ranks;
}
// The i-th segment, in slot order, that is another rank's.
constexpr int remote_segment(RowOrder order, int rank, int i) {
  return order == RowOrder::by_rank && i >= rank ? i + 1 : i;
}

// A push moves up to `rows` rows of one destination; one thread and one buffer of shared memory each.
struct PushArgs {
  RowOrder row_order = RowOrder::rotate_from_self;
  std::int32_t rows = 1;
  std::int32_t pushers = 1;   // per block, at most its threads
  std::uint32_t done_at = 0;  // finished tiles after which a row block is ready
  std::int32_t watermark_chunks = 1;
};

struct GemmReduceScatterArgs {
  GroupedGemmArgs gemm;
  LayerArgs layer;
  PushArgs push;
  std::int32_t compute_blocks = 0;
  bool all_hands = true;
};

// Shared memory that a block's pushers need. [bytes]
constexpr long long push_bytes(int pushers, int rows, int hidden) {
  return static_cast<long long>(pushers) * (2LL * rows * hidden + 8);
}
// What a GEMM variant leaves for that. [bytes]
constexpr long long bytes_for_pushes(const GemmVariant& v) {
  return reusable_bytes(v);
}

// `blocks` = compute_blocks + blocks that only push. Throws CudaError or std::invalid_argument when they
// cannot all be resident, or when the variant has no launcher (it must store plain tiles, not deferred).
void launch_gemm_reduce_scatter(const GemmReduceScatterArgs& args, const GemmVariant& variant,
                                int blocks, cudaStream_t stream);

// Sums the R planes in rank order, in fp32, into `output`: the rank's own from `partial`, the others from
// the staging buffer. Waits for each sender's watermark, chunk by chunk; the serial form finds complete
// planes and waits for nothing.
struct ReducePlanesArgs {
  LayerArgs layer;
  RowOrder row_order = RowOrder::rotate_from_self;
  std::int32_t watermark_chunks = 1;
  bool waits = true;
};
int reduce_planes_blocks(int tokens_per_rank);
void launch_reduce_planes(const ReducePlanesArgs& args, cudaStream_t stream);

}  // namespace fusescope::kernels
