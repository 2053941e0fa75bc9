// Exposed communication by three views: stated, compared, and not stated where there is nothing to go by.
#include "analysis/exposure.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "analysis/rungs.hpp"
#include "analysis/summary.hpp"
#include "hand_made.hpp"
#include "tests/timeline/tiny_layer.hpp"

namespace fusescope::analysis {
namespace {

Rungs rungs_of(double split_us, double full_us) {
  std::array<RungWalls, kRungs.size()> walls;
  walls.fill({{split_us}});
  walls.front() = {{split_us / 2}};
  walls.back() = {{full_us}};
  return make_rungs(walls, {});
}

// Rungs whose exposed communication is the path's and `more`.
Rungs rungs_like(const timeline::Timeline& timeline, const Attribution& attribution,
                 double more_us) {
  std::int64_t last_tile_end = 0;
  for (const timeline::Event& event : timeline.events) {
    if (event.kind == timeline::Kind::epilogue) {
      last_tile_end = std::max(last_tile_end, event.end_ns);
    }
  }
  std::int64_t own_ns = attribution.path.by_step[static_cast<std::size_t>(Step::schedule_build)];
  for (const Segment& segment : attribution.path.segments) {
    if (!segment.exposed && segment.step != Step::launch_gap) {
      own_ns +=
          std::max<std::int64_t>(0, segment.end_ns - std::max(segment.begin_ns, last_tile_end));
    }
  }
  const double full = static_cast<double>(attribution.wall_ns) / 1e3;
  const double cost = static_cast<double>(own_ns + attribution.exposed_ns) / 1e3 + more_us;
  return rungs_of(full - cost, full);
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
  const Rungs rungs = rungs_like(timeline_, attribution_, 0);
  const Exposure exposure = state_exposure(timeline_, attribution_, &rungs);
  EXPECT_NEAR(view(exposure, "rungs").us, view(exposure, "critical path").us, 1e-6);
  for (const std::string& warning : exposure.warnings) {
    EXPECT_EQ(warning.find("critical path and rungs"), std::string::npos) << warning;
  }
}

TEST_F(ExposureTest, DisagreementBeyondThreePercentIsSaid) {
  const double wall_us = static_cast<double>(attribution_.wall_ns) / 1e3;
  const Rungs rungs = rungs_like(timeline_, attribution_, 0.05 * wall_us);
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
  const Rungs rungs = rungs_like(timeline_, attribution_, 0.05 * wall_us);
  timeline_.meta.clock_bound_ns = 0.06 * static_cast<double>(attribution_.wall_ns);
  const Exposure exposure = state_exposure(timeline_, attribution_, &rungs);
  for (const std::string& warning : exposure.warnings) {
    EXPECT_EQ(warning.find("critical path and rungs"), std::string::npos) << warning;
  }
}

TEST_F(ExposureTest, AClippedTimelineStatesNothing) {
  timeline_.meta.dropped = 3;
  const Attribution refused = attribute(timeline_);
  const Rungs rungs = rungs_like(timeline_, attribution_, 0);
  for (const Exposure& exposure : {refused.exposure, state_exposure(timeline_, refused, &rungs)}) {
    EXPECT_FALSE(exposure.agree);
    for (const ExposedView& one : exposure.views) {
      EXPECT_NE(one.missing.find("clipped"), std::string::npos) << one.view;
    }
    EXPECT_NE(exposure.statement.find("No view states"), std::string::npos);
  }
}

// Two ranks whose path goes through jobs of rank 0 beside tiles, which end at 60 and 70 us; then through 10 us of
// a sum and a push of 20 us.
TEST(Exposure, JobsBesideTilesAreInBothRungs) {
  using timeline::Kind;
  using timeline::Role;
  using timeline::Stage;
  HandMade made(2, 2);
  made.wiring().hit_row_block = {{0, 0, 0, 0}, {0, 0, 0, 0}};
  made.wiring().expert_of_row_block = {{0}, {0}};
  const std::int64_t last_tile_end[] = {60'000, 70'000};
  for (int rank = 0; rank < 2; ++rank) {
    made.phase(rank, Kind::gemm_combine_push, 0, rank == 0 ? 100'000 : 70'000);
    const auto tiles = made.track(rank, Stage::gemm_combine_push, Role::compute, 0);
    made.event(tiles, Kind::mainloop, 0, last_tile_end[rank] - 5'000, {.row_block = 0, .index = 0});
    made.event(tiles, Kind::epilogue, last_tile_end[rank] - 5'000, last_tile_end[rank],
               {.row_block = 0, .index = 0});
  }
  const auto jobs = made.track(0, Stage::gemm_combine_push, Role::communication, 1);
  made.event(jobs, Kind::sum, 0, 20'000, {.token = 0, .index = 0});
  made.event(jobs, Kind::push, 20'000, 50'000, {.token = 0, .index = 0, .peer = 1});
  made.event(jobs, Kind::sum, 50'000, 80'000, {.token = 1, .index = 1});
  made.event(jobs, Kind::push, 80'000, 100'000, {.token = 1, .index = 1, .peer = 1});
  const timeline::Timeline timeline = made.build();
  const Attribution attribution = attribute(timeline);
  ASSERT_EQ(attribution.refusal, "");
  ASSERT_EQ(attribution.path.by_step[static_cast<std::size_t>(Step::combine_work)], 60'000);
  const Rungs rungs = rungs_of(70, 100);
  const Exposure exposure = state_exposure(timeline, attribution, &rungs);
  EXPECT_DOUBLE_EQ(view(exposure, "critical path").us, 20);
  EXPECT_DOUBLE_EQ(view(exposure, "rungs").us, 20);
}

TEST(Exposure, AnEmptyTimelineStatesNothing) {
  const Attribution refused = attribute(timeline::Timeline{});
  EXPECT_NE(refused.exposure.statement.find("No view states"), std::string::npos);
  EXPECT_FALSE(refused.exposure.agree);
}

}  // namespace
}  // namespace fusescope::analysis
