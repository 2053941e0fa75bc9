// Which tiles a block computes, in which order, and with which expert's weights. Run by a warp: experts are
// looked up by ballot.
#pragma once

#include <cstdint>

#include "gemm_args.hpp"
#include "gemm_smem.cuh"
#include "gemm_tile_order.hpp"

namespace fusescope::kernels {

inline constexpr int kNoTile = -1;

// Tiles have numbers in the order of TileOrder. A worker begins with its own number and takes growing
// ones: with a counter, the smallest that nobody has taken; else round robin.
//
// All functions but after() are called by all lanes, which get the same answers.
template <GemmVariant V>
class Schedule {
 public:
  __device__ Schedule(const GroupedGemmArgs& args, GemmControl<V>& control, int workers)
      : args_(args), control_(control), workers_(workers) {
    if constexpr (V.transposed)
      look_at_experts();
    row_tiles_ = first_tile(args.experts);
  }

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

  // False behind the last tile.
  __device__ bool find(int tile, TileJob& job) {
    const TileOrder order = this->order();
    if (tile >= order.tiles())
      return false;
    const int near = order.row_tile_near(tile);
    if (near < first_tile(expert_))
      expert_ = 0;  // the next range of columns begins
    expert_ = expert_of(near, expert_);
    job = order.at(tile, expert_, first_tile(expert_), first_tile(expert_ + 1));
    if constexpr (V.transposed) {
      const int first = first_block(expert_);
      const int last = first_block(expert_ + 1) - 1;
      job.row_block = first + (job.row_block - first_tile(expert_)) * blocks_per_tile(V);
      job.rows = rows_of_tile(job.row_block, last, rows_in(last), blocks_per_tile(V));
    } else {
      job.rows = rows_in(job.row_block);
    }
    return true;
  }

 private:
  // Made anew where it is needed: of its members only one takes a register in between.
  __device__ TileOrder order() const {
    return {row_tiles_, args_.n_tiles, args_.column_groups, args_.block_group};
  }

  __device__ int first_block(int expert) const { return args_.expert_rows[expert] / kBlockRows; }
  // Of an expert, or the number of all.
  __device__ int first_tile(int expert) const {
    int first = first_block(expert);
    if constexpr (blocks_per_tile(V) == 2)
      first = (first + control_.odd.count_before(expert)) / 2;
    if constexpr (V.transposed)
      first -= control_.merged.count_before(expert);
    return first;
  }

  __device__ int rows_in(int row_block) const {
    return args_.slack == nullptr ? kBlockRows : kBlockRows - args_.slack[row_block];
  }

  __device__ void look_at_experts() {
    constexpr int kAhead = 3;  // loads under way, each of 32 experts: one takes as long as all
    const int lane = static_cast<int>(threadIdx.x) % 32;
    int odd_before = 0;
    int merged_before = 0;
    for (int base = 0; base <= args_.experts / 32; base += kAhead) {
      int last[kAhead];  // of an expert's row blocks
      int blocks[kAhead];
      int in_last[kAhead];
#pragma unroll
      for (int n = 0; n < kAhead; ++n) {
        const int expert = (base + n) * 32 + lane;
        const int end = first_block(min(expert + 1, args_.experts));
        last[n] = end - 1;
        blocks[n] = end - first_block(min(expert, args_.experts));
      }
#pragma unroll
      for (int n = 0; n < kAhead; ++n)
        in_last[n] = blocks[n] > 1 ? rows_in(last[n]) : kBlockRows;
#pragma unroll
      for (int n = 0; n < kAhead; ++n) {
        if (base + n <= args_.experts / 32) {
          mark(control_.odd, base + n, blocks[n] % 2 != 0, odd_before);
          mark(control_.merged, base + n, merges(blocks[n], in_last[n], blocks_per_tile(V)),
               merged_before);
        }
      }
    }
    __syncwarp();
  }

  __device__ static void mark(ExpertBits& bits, int word, bool own, int& before) {
    const unsigned all = __ballot_sync(~0u, own);
    if (threadIdx.x % 32 == 0) {
      bits.words[word] = all;
      bits.before[word] = static_cast<std::uint16_t>(before);
    }
    before += __popc(all);
  }

  // Each lane tests the end of one expert, from one that is not behind the answer. Empty experts end
  // where they start and are passed over.
  __device__ int expert_of(int row_tile, int from) const {
    const int lane = static_cast<int>(threadIdx.x) % 32;
    for (int base = from;; base += 32) {
      const int expert = base + lane;
      const bool ends_behind = expert >= args_.experts || first_tile(expert + 1) > row_tile;
      const unsigned found = __ballot_sync(~0u, ends_behind);
      if (found != 0)
        return base + __ffs(static_cast<int>(found)) - 1;
    }
  }

  const GroupedGemmArgs& args_;
  GemmControl<V>& control_;
  int workers_;
  int row_tiles_;
  int expert_ = 0;
};

}  // namespace fusescope::kernels
