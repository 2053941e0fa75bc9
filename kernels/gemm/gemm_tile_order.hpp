// The order of a launch's tiles, as arithmetic: tile number in, place out. Plain C++20, so that the
// host's tests read the same lines as the producer.
#pragma once

#include <cstdint>

#include "gemm_variants.hpp"

namespace fusescope::kernels {

// One tile as the producer needs it.
struct TileJob {
  std::int32_t row_block;
  std::int32_t n_tile;
  std::int32_t expert;
  std::int32_t rows = kBlockRows;  // that hold something, from the first of row_block

  constexpr int halves() const { return halves_of(rows); }
  constexpr int row_blocks() const { return (rows + kBlockRows - 1) / kBlockRows; }
};

// Row blocks that a tile takes its rows from: one, but in transposed variants.
constexpr int row_blocks_of(const GemmVariant& v, const TileJob& job) {
  return v.transposed ? job.row_blocks() : 1;
}

// Transposed variants: whether the last of an expert's row blocks, which holds so many rows, goes with the tile
// before it.
constexpr bool merges(int row_blocks, int in_last, int blocks_per_tile) {
  return row_blocks > 1 && (row_blocks - 1) % blocks_per_tile == 0 && in_last <= kFewRows;
}
// Rows of the tile that begins with a row block, of an expert whose last is this one.
constexpr int rows_of_tile(int row_block, int last, int in_last, int blocks_per_tile) {
  const int next = row_block + blocks_per_tile;
  if (next > last)
    return (last - row_block) * kBlockRows + in_last;
  return blocks_per_tile * kBlockRows + (next == last && in_last <= kFewRows ? in_last : 0);
}

// Slot order, with two exceptions. The N tiles of `block_group` row blocks of one expert are
// interleaved, so that blocks that work side by side read the same weights. And the N tiles are dealt
// in `column_groups` equal ranges: all row blocks' tiles of the first range come first, then those
// of the second, so that the first columns of every row are done early.
struct TileOrder {
  int row_tiles;      // row blocks, but for those that go with another (transposed variants)
  int n_tiles;        // per row tile; a multiple of column_groups
  int column_groups;  // at least 1
  int block_group;    // at least 1

  constexpr int tiles() const { return row_tiles * n_tiles; }

  // A row block of the tile's expert. Whatever the order inside an expert, within a range its tiles
  // are those of its row blocks.
  constexpr int row_tile_near(int tile) const { return tile % range_tiles() / range_columns(); }

  // The tile, given its expert and the row blocks [first, last) of that expert.
  constexpr TileJob at(int tile, int expert, int first, int last) const {
    const int columns = range_columns();
    const int within = tile % range_tiles() - first * columns;
    const int per_group = block_group * columns;
    const int start = first + within / per_group * block_group;
    const int width = block_group < last - start ? block_group : last - start;
    const int in_group = within % per_group;
    return {start + in_group % width, tile / range_tiles() * columns + in_group / width, expert};
  }

 private:
  constexpr int range_columns() const { return n_tiles / column_groups; }
  constexpr int range_tiles() const { return row_tiles * range_columns(); }
};

}  // namespace fusescope::kernels
