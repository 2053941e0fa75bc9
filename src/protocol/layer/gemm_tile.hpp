#pragma once
// What the roles of a GEMM's block hand to each other (kernels/gemm/gemm_smem.cuh): which tile comes next, which
// one a stage or a staged chunk belongs to, and where the chunk lies.

#include "protocol/layer/gemm.hpp"

namespace fusescope::protocol {

// Row blocks that so many halves of them, from the first on, belong to.
inline int row_blocks_of(int halves) {
  return (halves + kConsumers - 1) / kConsumers;
}
// What stands in shared memory of a tile.
struct TileHeader {
  int row_block, n_tile;
  int halves;  // of row blocks that hold rows, from the first on

  std::uint64_t word() const {
    return static_cast<std::uint64_t>(row_block) * 256 + static_cast<std::uint64_t>(n_tile) * 8 +
           static_cast<std::uint64_t>(halves);
  }
  static TileHeader of(std::uint64_t word) {
    return {static_cast<int>(word / 256), static_cast<int>(word % 256 / 8),
            static_cast<int>(word % 8)};
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

// Rows of one consumer in one row block.
inline int half_rows(const Scenario& s) {
  return s.row_block / kConsumers;
}
// Halves of a tile that a consumer group has: every other one.
inline int halves_of_group(int halves, int group) {
  return (halves + kConsumers - 1 - group) / kConsumers;
}
// The same of the largest tile, in rows.
inline int most_rows_of_group(const Scenario& s) {
  return halves_of_group(s.most_halves(), 0) * half_rows(s);
}
inline constexpr int kMostRowsOfGroup = 12;
// The group's row of this number: its row block, from the tile's first on, and its place there.
struct RowOfGroup {
  int block, row;

  RowOfGroup(const Scenario& s, int group, int number)
      : block(number / half_rows(s)), row(group * half_rows(s) + number % half_rows(s)) {}
};
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
