// Which tiles a block computes, in which order, and with which expert's weights. Run by the producer
// warp: experts are looked up by ballot.
#pragma once

#include <cstdint>

#include "gemm_args.hpp"
#include "gemm_tile_order.hpp"

namespace fusescope::kernels {

// Tiles have numbers in the order of TileOrder. A worker begins with its own number and takes growing
// ones: with a counter, the smallest that nobody has taken; else round robin.
class Schedule {
 public:
  __device__ Schedule(const GroupedGemmArgs& args, int workers)
      : args_(args), row_blocks_(args.expert_rows[args.experts] / kBlockRows), workers_(workers) {}

  // The number of the worker's next tile. Called by one thread. A number behind the last tile ends the
  // worker: it asks no more.
  //
  // A worker that has tiles gets exactly one number behind the last, so that all workers together ask
  // as often as there are tiles, and the last question wraps the counter to zero for the next launch.
  __device__ int after(int tile) const {
    if (args_.next_tile == nullptr)
      return tile + workers_;
    const auto last = static_cast<unsigned>(order().tiles()) - 1;
    return workers_ + static_cast<int>(atomicInc(args_.next_tile, last));
  }

  // False behind the last tile. All lanes of the warp call it and get the same answer.
  __device__ bool find(int tile, TileJob& job) {
    const TileOrder order = this->order();
    if (tile >= order.tiles())
      return false;
    const int near = order.row_block_near(tile);
    if (near < first_block(expert_))
      expert_ = 0;  // the next range of columns begins
    expert_ = expert_of(near, expert_);
    job = order.at(tile, expert_, first_block(expert_), first_block(expert_ + 1));
    if (args_.slack != nullptr)
      job.rows = kBlockRows - args_.slack[job.row_block];
    return true;
  }

 private:
  // Made anew where it is needed: of its members only one takes a register in between.
  __device__ TileOrder order() const {
    return {row_blocks_, args_.n_tiles, args_.column_groups, args_.block_group};
  }

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
  int row_blocks_;
  int workers_;
  int expert_ = 0;
};

}  // namespace fusescope::kernels
