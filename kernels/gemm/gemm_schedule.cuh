// Which tiles a block computes, in which order, and with which expert's weights. Run by the producer
// warp, all lanes together: experts are looked up by ballot.
#pragma once

#include <cstdint>

#include "gemm_args.hpp"
#include "gemm_smem.cuh"

namespace fusescope::kernels {

// One tile as the producer needs it.
struct TileJob {
  std::int32_t row_block;
  std::int32_t n_tile;
  std::int32_t expert;
  bool shared;  // cluster of two: the other block's tile has the same weights
  bool spare;   // cluster of two: keeps the other block company, no output
};

// Rank of this block in its cluster (0 without one).
template <GemmVariant V>
__device__ inline int cluster_rank() {
  if constexpr (V.cluster == 1) {
    return 0;
  } else {
    return static_cast<int>(ptx::get_sreg_cluster_ctarank());
  }
}

// Tiles in slot order, dealt out round robin. Without clusters: the N tiles of `block_group` row
// blocks of one expert are interleaved, so that blocks that work side by side read the same weights.
// With clusters of two: always pairs, one row block for each block of the cluster; where both belong
// to one expert, the cluster shares the weights.
template <GemmVariant V>
class Schedule {
 public:
  __device__ Schedule(const GroupedGemmArgs& args, int worker, int workers)
      : args_(args),
        row_blocks_(args.expert_rows[args.experts] / kBlockRows),
        next_(worker / V.cluster),
        step_(workers / V.cluster),
        rank_(cluster_rank<V>()) {}

  // False at the end. All lanes of the warp call it and get the same answer.
  __device__ bool next(TileJob& job) {
    if constexpr (V.cluster == 1) {
      if (next_ >= row_blocks_ * args_.n_tiles)
        return false;
      // Whatever the order inside an expert, its tiles are the range of its row blocks.
      job.expert = expert_ = expert_of(next_ / args_.n_tiles, expert_);
      const int first = args_.expert_rows[expert_] / kBlockRows;
      const int last = args_.expert_rows[expert_ + 1] / kBlockRows;
      const int within = next_ - first * args_.n_tiles;
      const int start = first + within / (args_.block_group * args_.n_tiles) * args_.block_group;
      const int width = min(args_.block_group, last - start);
      const int index = within % (args_.block_group * args_.n_tiles);
      job.row_block = start + index % width;
      job.n_tile = index / width;
      job.shared = job.spare = false;
    } else {
      if (next_ >= (row_blocks_ + 1) / 2 * args_.n_tiles)
        return false;
      const int first = next_ / args_.n_tiles * 2;
      const int second = min(first + 1, row_blocks_ - 1);
      job.n_tile = next_ % args_.n_tiles;
      job.row_block = rank_ == 0 ? first : second;
      job.spare = rank_ == 1 && second == first;
      expert_ = expert_of(first, expert_);
      const int other = expert_of(second, expert_);
      job.expert = rank_ == 0 ? expert_ : other;
      job.shared = other == expert_;
    }
    next_ += step_;
    return true;
  }

 private:
  // Each lane tests the end of one expert, from one that is not behind the answer. Empty experts end
  // where they start and are passed over.
  __device__ int expert_of(int row_block, int from) const {
    const int lane = static_cast<int>(threadIdx.x) % 32;
    for (int base = from;; base += 32) {
      const int expert = base + lane;
      const bool ends_behind =
          expert >= args_.experts || args_.expert_rows[expert + 1] > row_block * kBlockRows;
      const unsigned found = __ballot_sync(~0u, ends_behind);
      if (found != 0)
        return base + __ffs(static_cast<int>(found)) - 1;
    }
  }

  const GroupedGemmArgs& args_;
  int row_blocks_;
  int next_;
  int step_;
  int rank_;
  int expert_ = 0;
};

}  // namespace fusescope::kernels
