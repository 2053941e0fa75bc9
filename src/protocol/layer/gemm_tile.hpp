#pragma once
// What the roles of a GEMM's block hand to each other (kernels/gemm/gemm_smem.cuh): which tile comes next, which
// one a stage or a staged chunk belongs to, and where the chunk lies.

#include "protocol/layer/gemm.hpp"

namespace fusescope::protocol {

// What stands in shared memory of a tile: the lowest bit says that only the first consumer has rows.
struct TileHeader {
  int row_block, n_tile;
  int halves;  // of the row block that hold rows

  std::uint64_t word() const {
    return static_cast<std::uint64_t>(row_block) * 64 + static_cast<std::uint64_t>(n_tile) * 2 +
           (halves == 1 ? 1 : 0);
  }
  static TileHeader of(std::uint64_t word) {
    return {static_cast<int>(word / 64), static_cast<int>(word % 64 / 2), word % 2 == 1 ? 1 : 2};
  }
};
// What the scheduler has found: the tile's number stands for what it says of it.
struct NextTile {
  int tile;
  bool is_open;  // its gate

  std::uint64_t word() const { return static_cast<std::uint64_t>(tile) * 2 + (is_open ? 1 : 0); }
  static NextTile of(std::uint64_t word) { return {static_cast<int>(word / 2), word % 2 == 1}; }
};
// In place of a header, or of a tile: the role ends.
inline constexpr std::uint64_t kStop = ~0ull;

// Rows of one consumer.
inline int half_rows(const Scenario& s) {
  return s.row_block / kConsumers;
}
// A group's part of what goes with its chunks.
struct GroupChunks {
  MbarrierId staged, drained;
  CellId tiles, lenders;

  GroupChunks(const GemmCall& c, int group)
      : staged(c.block.staged + group * kMostChunks),
        drained(c.block.drained + group * kMostChunks),
        tiles(c.block.chunk_tiles + group * kMostChunks),
        lenders(c.block.lenders + group * kMostChunks) {}
};
// The chunk of this number of a group's output. Lent ones come first: they lie in `lender`, the last stage of their
// tile, in the group's own half of the rows; the others in rows behind the ring.
inline CellId chunk_cell(const GemmCall& c, int group, int number, int lender) {
  const int own = group * half_rows(c.layer.s);
  const int lent = lent_chunks(c.layer.s, c.activates);
  return number < lent ? c.layer.smem_row(c.block, lender).first + own + number
                       : c.layer.smem_row(c.block, kStages + number - lent).first + own;
}

}  // namespace fusescope::protocol
