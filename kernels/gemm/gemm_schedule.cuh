// Which tiles a block computes, in which order, and with which expert's weights. Run by the producer
// warp, all lanes together: experts are looked up by ballot.
#pragma once

#include <cstdint>

#include "gemm_args.hpp"

namespace fusescope::kernels {

// One tile as the producer needs it.
struct TileJob {
  std::int32_t row_block;
  std::int32_t n_tile;
  std::int32_t expert;
};

// Tiles in slot order, dealt out round robin. The N tiles of `block_group` row blocks of one expert
// are interleaved, so that blocks that work side by side read the same weights.
class Schedule {
 public:
  __device__ Schedule(const GroupedGemmArgs& args, int worker, int workers)
      : args_(args),
        tiles_(args.expert_rows[args.experts] / kBlockRows * args.n_tiles),
        next_(worker),
        step_(workers) {}

  // False at the end. All lanes of the warp call it and get the same answer.
  __device__ bool next(TileJob& job) {
    if (next_ >= tiles_)
      return false;
    // Whatever the order inside an expert, its tiles are the range of its row blocks.
    expert_ = expert_of(next_ / args_.n_tiles, expert_);
    const int first = args_.expert_rows[expert_] / kBlockRows;
    const int last = args_.expert_rows[expert_ + 1] / kBlockRows;
    const int within = next_ - first * args_.n_tiles;
    const int per_group = args_.block_group * args_.n_tiles;
    const int start = first + within / per_group * args_.block_group;
    const int width = min(args_.block_group, last - start);
    job.row_block = start + within % per_group % width;
    job.n_tile = within % per_group / width;
    job.expert = expert_;
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
  int tiles_;
  int next_;
  int step_;
  int expert_ = 0;
};

}  // namespace fusescope::kernels
