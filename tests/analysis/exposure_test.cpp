// Exposed communication by three views: stated, compared, and not stated where there is nothing to go by.
#include "analysis/exposure.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "analysis/rungs.hpp"
#include "analysis/summary.hpp"
#include "tests/timeline/tiny_layer.hpp"

namespace fusescope::analysis {
namespace {

// Rungs whose exposed communication is the path's and `more`.
Rungs rungs_like(const Attribution& attribution, double more_us) {
  double own_us = 0;
  for (const Step step :
       {Step::schedule_build, Step::push_drain, Step::combine_wait, Step::combine_work}) {
    const auto i = static_cast<std::size_t>(step);
    own_us +=
        static_cast<double>(attribution.path.by_step[i] - attribution.path.exposed_by_step[i]) /
        1e3;
  }
  const double full = static_cast<double>(attribution.wall_ns) / 1e3;
  const double split = full - own_us - static_cast<double>(attribution.exposed_ns) / 1e3 - more_us;
  std::array<RungWalls, kRungs.size()> walls;
  walls.fill({{split}});
  walls.front() = {{split / 2}};
  walls.back() = {{full}};
  return make_rungs(walls, {});
}

const ExposedView& view(const Exposure& exposure, const std::string& called) {
  return *std::find_if(exposure.views.begin(), exposure.views.end(),
                       [&](const ExposedView& one) { return one.view == called; });
}

class ExposureTest : public testing::Test {
 protected:
  timeline::Timeline timeline_ = timeline::tiny_layer(timeline::seed_sized());
  Attribution attribution_ = attribute(timeline_);
};

TEST_F(ExposureTest, WithoutRungsTwoViewsState) {
  const Exposure& exposure = attribution_.exposure;
  ASSERT_EQ(exposure.views.size(), 3u);
  EXPECT_DOUBLE_EQ(view(exposure, "critical path").us,
                   static_cast<double>(attribution_.exposed_ns) / 1e3);
  EXPECT_EQ(view(exposure, "wait accounting").missing, "");
  EXPECT_NE(view(exposure, "rungs").missing.find("--rungs"), std::string::npos);
}

TEST_F(ExposureTest, RungsAgreeWithThePathTheyWereMadeFrom) {
  const Rungs rungs = rungs_like(attribution_, 0);
  const Exposure exposure = state_exposure(timeline_, attribution_, &rungs);
  EXPECT_NEAR(view(exposure, "rungs").us, view(exposure, "critical path").us, 1e-6);
  for (const std::string& warning : exposure.warnings) {
    EXPECT_EQ(warning.find("critical path and rungs"), std::string::npos) << warning;
  }
}

TEST_F(ExposureTest, DisagreementBeyondThreePercentIsSaid) {
  const double wall_us = static_cast<double>(attribution_.wall_ns) / 1e3;
  const Rungs rungs = rungs_like(attribution_, 0.05 * wall_us);
  const Exposure exposure = state_exposure(timeline_, attribution_, &rungs);
  EXPECT_FALSE(exposure.agree);
  EXPECT_GE(exposure.residual_us, 0.05 * wall_us * (1 - 1e-9));
  ASSERT_FALSE(exposure.warnings.empty());
  EXPECT_TRUE(std::any_of(exposure.warnings.begin(), exposure.warnings.end(),
                          [](const std::string& warning) {
                            return warning.find("critical path and rungs disagree") == 0 &&
                                   warning.find("5.0% of the wall") != std::string::npos;
                          }));
  EXPECT_NE(exposure_text(exposure).find("Warning: critical path and rungs"), std::string::npos);
}

TEST_F(ExposureTest, DisagreementWithinTheErrorsIsNot) {
  const double wall_us = static_cast<double>(attribution_.wall_ns) / 1e3;
  const Rungs rungs = rungs_like(attribution_, 0.05 * wall_us);
  timeline_.meta.clock_bound_ns = 0.06 * static_cast<double>(attribution_.wall_ns);
  const Exposure exposure = state_exposure(timeline_, attribution_, &rungs);
  for (const std::string& warning : exposure.warnings) {
    EXPECT_EQ(warning.find("critical path and rungs"), std::string::npos) << warning;
  }
}

TEST_F(ExposureTest, AClippedTimelineStatesNothing) {
  timeline_.meta.dropped = 3;
  const Attribution refused = attribute(timeline_);
  const Rungs rungs = rungs_like(attribution_, 0);
  for (const Exposure& exposure : {refused.exposure, state_exposure(timeline_, refused, &rungs)}) {
    EXPECT_FALSE(exposure.agree);
    for (const ExposedView& one : exposure.views) {
      EXPECT_NE(one.missing.find("clipped"), std::string::npos) << one.view;
    }
    EXPECT_NE(exposure.statement.find("No view states"), std::string::npos);
  }
}

TEST(Exposure, AnEmptyTimelineStatesNothing) {
  const Attribution refused = attribute(timeline::Timeline{});
  EXPECT_NE(refused.exposure.statement.find("No view states"), std::string::npos);
  EXPECT_FALSE(refused.exposure.agree);
}

}  // namespace
}  // namespace fusescope::analysis
