#pragma once
// Which row blocks of an expert are multiplied together as one tile. The kernels have the same rule in
// kernels/gemm/gemm_tile_order.hpp; a test holds the two together.

#include <cstdint>
#include <vector>

#include "layer/config.hpp"
#include "layer/tables.hpp"

namespace fusescope {

// How a tile shape groups an expert's rows. Tiles by row steps multiply the rows that they hold, rounded up to
// steps; the others always their whole row block.
struct RowGrouping {
  int blocks = 1;    // row blocks of a tile, from the expert's first on
  int absorbed = 0;  // a last row block of at most so many rows goes with the tile before it
  int row_step = 0;  // rows that a tile is multiplied in steps of; 0: whole row blocks

  // Tiles may have several row blocks, so that their records name only the first.
  bool merges() const { return blocks > 1 || absorbed > 0; }
};

// `tile` chosen: gemm_path.hpp.
constexpr RowGrouping row_grouping(TileShape tile) {
  constexpr int kAbsorbed = 32;
  constexpr int kRowStep = 16;
  switch (tile) {
    case TileShape::m160n256:
      return {1, kAbsorbed, kRowStep};
    case TileShape::m288n128:
      return {2, kAbsorbed, kRowStep};
    default:
      return {};
  }
}

// The rows of a tile, whatever its columns.
struct RowTile {
  std::int32_t first = 0;   // row block, by which the tile's records name it
  std::int32_t blocks = 1;  // row blocks
  std::int32_t rows = 0;    // that hold something

  std::int32_t last() const { return first + blocks - 1; }
  friend bool operator==(const RowTile&, const RowTile&) = default;
};

// In the order of their rows.
std::vector<RowTile> row_tiles(const ScheduleTables& tables, const RowGrouping& grouping);

// Of each row block: the first one of its tile.
std::vector<std::int32_t> tiles_of_row_blocks(const std::vector<RowTile>& tiles);

}  // namespace fusescope
