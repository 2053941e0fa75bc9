// Which tiles a block computes, in which order, and with which expert's weights. Run by the producer
// warp, all lanes together: experts are looked up by ballot.
#pragma once

#include <cstdint>

#include "gemm_args.hpp"
#include "gemm_tile_order.hpp"

namespace fusescope::kernels {

// The tiles of TileOrder, dealt out round robin.
class Schedule {
 public:
  __device__ Schedule(const GroupedGemmArgs& args, int worker, int workers)
      : args_(args),
        order_{args.expert_rows[args.experts] / kBlockRows, args.n_tiles, args.column_groups,
               args.block_group},
        next_(worker),
        step_(workers) {}

  // False at the end. All lanes of the warp call it and get the same answer.
  __device__ bool next(TileJob& job) {
    if (next_ >= order_.tiles())
      return false;
    const int near = order_.row_block_near(next_);
    if (near < first_block(expert_))
      expert_ = 0;  // the next range of columns begins
    expert_ = expert_of(near, expert_);
    job = order_.at(next_, expert_, first_block(expert_), first_block(expert_ + 1));
    next_ += step_;
    return true;
  }

 private:
  __device__ int first_block(int expert) const { return args_.expert_rows[expert] / kBlockRows; }

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
  TileOrder order_;
  int next_;
  int step_;
  int expert_ = 0;
};

}  // namespace fusescope::kernels
