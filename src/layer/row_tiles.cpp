#include "layer/row_tiles.hpp"

#include <algorithm>

namespace fusescope {

std::vector<RowTile> row_tiles(const ScheduleTables& tables, const RowGrouping& grouping) {
  std::vector<RowTile> tiles;
  const auto rows_in = [&](std::int32_t block) {
    return kRowBlock - tables.slack[static_cast<std::size_t>(block)];
  };
  for (std::size_t expert = 0; expert + 1 < tables.expert_rows.size(); ++expert) {
    const std::int32_t begin = tables.expert_rows[expert] / kRowBlock;
    const std::int32_t end = tables.expert_rows[expert + 1] / kRowBlock;
    const bool absorbs = end - begin >= 2 && rows_in(end - 1) <= grouping.absorbed;
    const std::int32_t grouped = absorbs ? end - 1 : end;
    for (std::int32_t first = begin; first < grouped; first += grouping.blocks) {
      RowTile tile{first, std::min<std::int32_t>(grouping.blocks, grouped - first), 0};
      if (absorbs && tile.last() + 1 == grouped) {
        ++tile.blocks;
      }
      for (std::int32_t block = tile.first; block <= tile.last(); ++block) {
        tile.rows += rows_in(block);
      }
      tiles.push_back(tile);
    }
  }
  return tiles;
}

std::vector<std::int32_t> tiles_of_row_blocks(const std::vector<RowTile>& tiles) {
  std::vector<std::int32_t> of_block;
  for (const RowTile& tile : tiles) {
    of_block.insert(of_block.end(), static_cast<std::size_t>(tile.blocks), tile.first);
  }
  return of_block;
}

}  // namespace fusescope
