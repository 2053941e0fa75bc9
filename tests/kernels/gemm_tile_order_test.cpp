// The tile order on the host: every tile exactly once, slot order inside a range of columns, ranges of
// columns one after the other.
#include "kernels/gemm/gemm_tile_order.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "base/random.hpp"
#include "layer/problem.hpp"
#include "layer/row_tiles.hpp"

namespace fusescope::kernels {
namespace {

// Expert by expert; the first row block of each, and the end.
std::vector<int> prefix_of(const std::vector<int>& blocks_per_expert) {
  std::vector<int> prefix{0};
  for (const int blocks : blocks_per_expert)
    prefix.push_back(prefix.back() + blocks);
  return prefix;
}

std::vector<TileJob> walk(const TileOrder& order, const std::vector<int>& prefix) {
  std::vector<TileJob> jobs;
  for (int tile = 0; tile < order.tiles(); ++tile) {
    const int near = order.row_tile_near(tile);
    int expert = 0;
    while (prefix[static_cast<std::size_t>(expert) + 1] <= near)
      ++expert;
    const auto e = static_cast<std::size_t>(expert);
    jobs.push_back(order.at(tile, expert, prefix[e], prefix[e + 1]));
  }
  return jobs;
}

const std::vector<int> kRouting = {3, 0, 1, 5, 0, 0, 2, 4};

TEST(GemmTileOrder, EveryTileOnceWithItsOwnExpert) {
  const std::vector<int> prefix = prefix_of(kRouting);
  for (const int n_tiles : {4, 6, 12}) {
    for (const int column_groups : {1, 2, 4}) {
      if (n_tiles % column_groups != 0)
        continue;
      for (const int block_group : {1, 2, 3, 8}) {
        SCOPED_TRACE(std::to_string(n_tiles) + " N tiles, " + std::to_string(column_groups) +
                     " column groups, block group " + std::to_string(block_group));
        const TileOrder order{prefix.back(), n_tiles, column_groups, block_group};
        std::set<std::pair<int, int>> seen;
        for (const TileJob& job : walk(order, prefix)) {
          const auto e = static_cast<std::size_t>(job.expert);
          EXPECT_TRUE(prefix[e] <= job.row_block && job.row_block < prefix[e + 1]);
          EXPECT_TRUE(0 <= job.n_tile && job.n_tile < n_tiles);
          EXPECT_TRUE(seen.emplace(job.row_block, job.n_tile).second);
        }
        EXPECT_EQ(seen.size(), static_cast<std::size_t>(prefix.back() * n_tiles));
      }
    }
  }
}

TEST(GemmTileOrder, RangesOfColumnsComeOneAfterTheOther) {
  const std::vector<int> prefix = prefix_of(kRouting);
  const TileOrder order{prefix.back(), 12, 4, 2};
  const std::vector<TileJob> jobs = walk(order, prefix);
  const std::size_t range = jobs.size() / 4;
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    EXPECT_EQ(jobs[i].n_tile / 3, static_cast<int>(i / range)) << "tile " << i;
    if (i % range != 0) {
      EXPECT_GE(jobs[i].expert, jobs[i - 1].expert) << "tile " << i;
    }
  }
}

TEST(GemmTileOrder, NeighboursReadTheSameWeights) {
  const TileOrder order{4, 3, 1, 2};
  std::vector<std::pair<int, int>> places;
  for (const TileJob& job : walk(order, prefix_of({3, 1})))
    places.emplace_back(job.row_block, job.n_tile);
  const std::vector<std::pair<int, int>> want = {{0, 0}, {1, 0}, {0, 1}, {1, 1}, {0, 2}, {1, 2},
                                                 {2, 0}, {2, 1}, {2, 2}, {3, 0}, {3, 1}, {3, 2}};
  EXPECT_EQ(places, want);
}

// --- transposed variants: which row blocks are one tile ---

ScheduleTables random_tables(std::uint64_t index) {
  Random random(31, index);
  const auto between = [&](int least, int most) {
    return least + static_cast<int>(random.below(static_cast<std::uint64_t>(most - least + 1)));
  };
  Shape shape;
  shape.ranks = between(1, 4);
  shape.tokens_per_rank = between(1, 250);
  shape.hidden = 64;
  shape.intermediate = 64;
  shape.experts = between(1, 40);
  shape.topk = between(1, std::min(shape.experts, 4));
  RoutingSpec spec;
  spec.kind = RoutingKind::zipf;
  spec.alpha = random.unit() * 3;
  spec.seed = random.next();
  return build_tables_golden(shape, make_problem(shape, spec).routing, SlotOrder::by_token, 0);
}

// As Schedule walks them: tiles are numbered by row tiles.
std::vector<TileJob> transposed_walk(const ScheduleTables& tables, int blocks, int n_tiles,
                                     int column_groups, int block_group) {
  const auto first_block = [&](int expert) {
    return tables.expert_rows[static_cast<std::size_t>(expert)] / kBlockRows;
  };
  const auto rows_in = [&](int block) {
    return kBlockRows - tables.slack[static_cast<std::size_t>(block)];
  };
  const int experts = static_cast<int>(tables.expert_rows.size()) - 1;
  std::vector<int> first_tile{0};
  for (int expert = 0; expert < experts; ++expert) {
    const int own = first_block(expert + 1) - first_block(expert);
    const bool merged = own > 0 && merges(own, rows_in(first_block(expert + 1) - 1), blocks);
    first_tile.push_back(first_tile.back() + (own + blocks - 1) / blocks - (merged ? 1 : 0));
  }
  std::vector<TileJob> jobs =
      walk({first_tile.back(), n_tiles, column_groups, block_group}, first_tile);
  for (TileJob& job : jobs) {
    const int tile = job.row_block - first_tile[static_cast<std::size_t>(job.expert)];
    const int last = first_block(job.expert + 1) - 1;
    job.row_block = first_block(job.expert) + tile * blocks;
    job.rows = rows_of_tile(job.row_block, last, rows_in(last), blocks);
  }
  return jobs;
}

class TransposedTiles : public ::testing::TestWithParam<TileShape> {};

TEST_P(TransposedTiles, AreTheLayersRowTiles) {
  const RowGrouping grouping = row_grouping(GetParam());
  int absorbed = 0;
  int of_later_experts = 0;
  for (std::uint64_t index = 0; index < 200; ++index) {
    const ScheduleTables tables = random_tables(index);
    constexpr int kNTiles = 4;
    std::vector<std::tuple<int, int, int, int>> want;
    for (const RowTile& tile : row_tiles(tables, grouping)) {
      for (int n_tile = 0; n_tile < kNTiles; ++n_tile)
        want.emplace_back(tile.first, n_tile, tile.blocks, tile.rows);
      absorbed += tile.blocks > grouping.blocks;
      of_later_experts += tile.blocks > grouping.blocks && tile.first > 0;
    }
    std::vector<std::tuple<int, int, int, int>> got;
    const int column_groups = index % 2 == 0 ? 1 : 2;
    for (const TileJob& job : transposed_walk(tables, grouping.blocks, kNTiles, column_groups, 3))
      got.emplace_back(job.row_block, job.n_tile, job.row_blocks(), job.rows);
    std::sort(got.begin(), got.end());
    EXPECT_EQ(got, want) << "tables " << index;
  }
  EXPECT_GE(absorbed, grouping.blocks == 1 ? 100 : 30);
  EXPECT_GE(of_later_experts, grouping.blocks == 1 ? 50 : 25);
}

INSTANTIATE_TEST_SUITE_P(Shapes, TransposedTiles,
                         ::testing::Values(TileShape::m160n256, TileShape::m288n128),
                         [](const auto& shape) {
                           return std::string(shape.param == TileShape::m160n256 ? "m160n256"
                                                                                 : "m288n128");
                         });

}  // namespace
}  // namespace fusescope::kernels
