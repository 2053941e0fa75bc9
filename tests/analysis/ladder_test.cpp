#include "analysis/ladder.hpp"

#include <gtest/gtest.h>

#include <stdexcept>

namespace fusescope::analysis {
namespace {

TEST(Ladder, EachRungAddsOneFeature) {
  Config split;
  split.dispatch_comm_sms = 24;
  split.slot_order = SlotOrder::interleave_sources;
  split.inject = {InjectPoint::pull, 100, -1, -1};
  Config tuned = split;
  tuned.dispatch_comm_sms = 12;
  tuned.watermark_chunks = 4;
  const std::vector<LadderRung> rungs = ladder_configs(split, tuned);

  ASSERT_EQ(rungs.size(), 7U);
  EXPECT_EQ(rungs[0].name, "serial");
  EXPECT_EQ(rungs[0].config.form, LayerForm::serial);
  const Config& plain = rungs[1].config;
  EXPECT_EQ(plain.form, LayerForm::fused);
  EXPECT_EQ(plain.pull_order, PullOrder::by_token);
  EXPECT_EQ(plain.job_order, JobOrder::by_token);
  EXPECT_EQ(plain.combine, Combine::block_per_job);
  EXPECT_FALSE(plain.all_hands);

  // From the second on, a rung differs from the one before in exactly the feature that it names.
  Config expected = plain;
  expected.pull_order = PullOrder::by_slot;
  EXPECT_EQ(rungs[2].config, expected);
  expected.job_order = JobOrder::by_ready;
  EXPECT_EQ(rungs[3].config, expected);
  expected.combine = Combine::dispenser;
  EXPECT_EQ(rungs[4].config, expected);
  expected.all_hands = true;
  EXPECT_EQ(rungs[5].config, expected);
  EXPECT_EQ(rungs[6].config.dispatch_comm_sms, 12);
  EXPECT_EQ(rungs[6].config.watermark_chunks, 4);
  for (const LadderRung& rung : rungs) {
    EXPECT_EQ(rung.config.slot_order, SlotOrder::interleave_sources) << rung.name;
    EXPECT_EQ(rung.config.inject, Inject{}) << rung.name;
  }
}

TEST(Ladder, GainsTelescopeFromSerialToTheLastRung) {
  const std::vector<LadderRung> rungs = ladder_configs(Config{}, Config{});
  const std::vector<LadderWall> walls = {{true, 1000, 3}, {true, 1380, 4}, {true, 1200, 4},
                                         {true, 1100, 0}, {true, 900, 0},  {true, 805, 3},
                                         {true, 801, 4}};
  const Ladder ladder = make_ladder(rungs, walls);
  ASSERT_EQ(ladder.steps.size(), 7U);
  EXPECT_DOUBLE_EQ(ladder.steps[1].gain_us, -380);
  EXPECT_NEAR(ladder.steps[1].against_serial, 0.38, 1e-12);
  EXPECT_DOUBLE_EQ(ladder.steps[1].gain_half_ci_us, 5);
  EXPECT_FALSE(ladder.steps[1].tie);
  EXPECT_TRUE(ladder.steps[6].tie);  // 4 us within +-5 us
  double gained = 0;
  for (const LadderStep& step : ladder.steps) {
    gained += step.gain_us;
  }
  EXPECT_DOUBLE_EQ(gained, 1000 - 801);
}

TEST(Ladder, ARungThatFailedIsSteppedOver) {
  const std::vector<LadderRung> rungs = ladder_configs(Config{}, Config{});
  const std::vector<LadderWall> walls = {{true, 1000, 0}, {false, 0, 0},  {true, 1200, 0},
                                         {true, 1100, 0}, {true, 900, 0}, {true, 800, 0},
                                         {true, 800, 0}};
  const Ladder ladder = make_ladder(rungs, walls);
  EXPECT_FALSE(ladder.steps[1].ran);
  EXPECT_DOUBLE_EQ(ladder.steps[1].gain_us, 0);
  EXPECT_DOUBLE_EQ(ladder.steps[2].gain_us, -200);
}

TEST(Ladder, WantsOneWallPerRung) {
  EXPECT_THROW(make_ladder(ladder_configs(Config{}, Config{}), {}), std::invalid_argument);
}

}  // namespace
}  // namespace fusescope::analysis
