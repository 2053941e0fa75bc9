// Which row blocks are one tile: by hand, and on random routings that every row lies in one tile.
#include "layer/row_tiles.hpp"

#include "base/random.hpp"
#include "layer_test_support.hpp"

namespace fusescope {
namespace {

// Expert by expert, rows that hold something.
ScheduleTables tables_with(const std::vector<int>& rows_of_expert) {
  ScheduleTables tables;
  tables.expert_rows = {0};
  for (int rows : rows_of_expert) {
    int blocks = 0;
    for (; rows > 0; rows -= kRowBlock, ++blocks) {
      tables.slack.push_back(std::max(0, kRowBlock - rows));
    }
    tables.expert_rows.push_back(tables.expert_rows.back() + blocks * kRowBlock);
  }
  return tables;
}

std::vector<RowTile> tiles(TileShape shape, const std::vector<int>& rows_of_expert) {
  return row_tiles(tables_with(rows_of_expert), row_grouping(shape));
}

using Tiles = std::vector<RowTile>;

TEST(RowTiles, OfWholeRowBlocksAreTheRowBlocks) {
  for (const TileShape shape : {TileShape::m128n128, TileShape::m128n256}) {
    EXPECT_EQ(tiles(shape, {129, 0, 256}),
              (Tiles{{0, 1, 128}, {1, 1, 1}, {2, 1, 128}, {3, 1, 128}}));
    EXPECT_FALSE(row_grouping(shape).merges());
  }
}

TEST(RowTiles, AnExpertsLastRowsGoWithTheRowBlockBefore) {
  const TileShape shape = TileShape::m160n256;
  EXPECT_TRUE(row_grouping(shape).merges());
  EXPECT_EQ(tiles(shape, {32}), (Tiles{{0, 1, 32}}));
  EXPECT_EQ(tiles(shape, {160, 0, 161}), (Tiles{{0, 2, 160}, {2, 1, 128}, {3, 1, 33}}));
  EXPECT_EQ(tiles(shape, {257, 1}), (Tiles{{0, 1, 128}, {1, 2, 129}, {3, 1, 1}}));
}

TEST(RowTiles, OfTwoRowBlocksAbsorbTheLastOneToo) {
  const TileShape shape = TileShape::m288n128;
  EXPECT_EQ(tiles(shape, {1}), (Tiles{{0, 1, 1}}));
  EXPECT_EQ(tiles(shape, {129, 256}), (Tiles{{0, 2, 129}, {2, 2, 256}}));
  EXPECT_EQ(tiles(shape, {288, 289}), (Tiles{{0, 3, 288}, {3, 2, 256}, {5, 1, 33}}));
  EXPECT_EQ(tiles(shape, {400, 545}),
            (Tiles{{0, 2, 256}, {2, 2, 144}, {4, 2, 256}, {6, 2, 256}, {8, 1, 33}}));
  EXPECT_EQ(tiles(shape, {520}), (Tiles{{0, 2, 256}, {2, 3, 264}}));
}

TEST(RowTiles, NameEveryRowBlockOnce) {
  EXPECT_EQ(tiles_of_row_blocks(tiles(TileShape::m288n128, {288, 1, 400})),
            (std::vector<std::int32_t>{0, 0, 0, 3, 4, 4, 6, 6}));
  for (std::uint64_t round = 0; round < 300; ++round) {
    Random random(8, round);
    std::vector<int> rows_of_expert;
    for (int expert = 0; expert < 6; ++expert) {
      rows_of_expert.push_back(static_cast<int>(random.below(600)));
    }
    const ScheduleTables tables = tables_with(rows_of_expert);
    const std::vector<std::int32_t> experts = experts_of_row_blocks(tables);
    for (const TileShape shape : {TileShape::m128n256, TileShape::m160n256, TileShape::m288n128}) {
      const RowGrouping grouping = row_grouping(shape);
      const int most = grouping.blocks * kRowBlock + grouping.absorbed;
      std::vector<int> held(rows_of_expert.size());
      int next = 0;
      for (const RowTile& tile : row_tiles(tables, grouping)) {
        EXPECT_EQ(tile.first, next);
        next = tile.last() + 1;
        EXPECT_EQ(experts.at(static_cast<std::size_t>(tile.first)),
                  experts.at(static_cast<std::size_t>(tile.last())));
        EXPECT_GT(tile.rows, 0);
        EXPECT_LE(tile.rows, most);
        held[static_cast<std::size_t>(experts[static_cast<std::size_t>(tile.first)])] += tile.rows;
      }
      EXPECT_EQ(next, tables.row_blocks());
      EXPECT_EQ(held, rows_of_expert);
    }
  }
}

}  // namespace
}  // namespace fusescope
