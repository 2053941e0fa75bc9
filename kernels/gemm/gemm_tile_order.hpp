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
  std::int32_t rows = kBlockRows;  // of the row block that hold something

  constexpr int halves() const { return halves_of(rows); }
};

// Slot order, with two exceptions. The N tiles of `block_group` row blocks of one expert are
// interleaved, so that blocks that work side by side read the same weights. And the N tiles are dealt
// in `column_groups` equal ranges: all row blocks' tiles of the first range come first, then those
// of the second, so that the first columns of every row are done early.
struct TileOrder {
  int row_blocks;
  int n_tiles;        // per row block; a multiple of column_groups
  int column_groups;  // at least 1
  int block_group;    // at least 1

  constexpr int tiles() const { return row_blocks * n_tiles; }

  // A row block of the tile's expert. Whatever the order inside an expert, within a range its tiles
  // are those of its row blocks.
  constexpr int row_block_near(int tile) const { return tile % range_tiles() / range_columns(); }

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
  constexpr int range_tiles() const { return row_blocks * range_columns(); }
};

}  // namespace fusescope::kernels
