// The synthetic iteration must itself be sound, or the other tests prove little.

#include "synthetic.hpp"

#include <gtest/gtest.h>

#include <numeric>

namespace fusescope::reports {
namespace {

TEST(Synthetic, TimelineKeepsTheEventContract) {
  EXPECT_EQ(timeline::check(synthetic_timeline()), "");
}

TEST(Synthetic, AttributionSumsToTheWall) {
  const ReportInput input = synthetic_input();
  const auto& path = input.chosen->attribution.path;
  EXPECT_EQ(std::accumulate(path.by_step.begin(), path.by_step.end(), std::int64_t{0}),
            input.chosen->timeline.wall_ns());
  EXPECT_FALSE(input.chosen->attribution.accounting.gates.empty());
}

}  // namespace
}  // namespace fusescope::reports
