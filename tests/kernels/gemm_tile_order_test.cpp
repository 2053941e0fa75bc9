// The tile order on the host: every tile exactly once, slot order inside a range of columns, ranges of
// columns one after the other.
#include "kernels/gemm/gemm_tile_order.hpp"

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <utility>
#include <vector>

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

}  // namespace
}  // namespace fusescope::kernels
