#include "sweep/timing_guard.hpp"

#include <gtest/gtest.h>

namespace fusescope::sweep {
namespace {

Trial timed(TrialKind kind, std::vector<double> walls, std::vector<double> clocks = {}) {
  Trial trial;
  trial.kind = kind;
  trial.wall_us = std::move(walls);
  trial.sm_clock_mhz = std::move(clocks);
  return trial;
}

std::vector<double> around(double middle) {
  std::vector<double> walls;
  for (int i = -5; i <= 5; ++i) {
    walls.push_back(middle * (1 + 0.001 * i));
  }
  return walls;
}

TEST(TimingGuard, WithoutClocksAndBaseATrialCountsAsItIs) {
  TimingGuard guard({});
  Trial trial = timed(TrialKind::search, {3, 1, 2});
  guard.judge(trial);
  EXPECT_EQ(trial.median_us, 2);
  EXPECT_EQ(trial.raw_median_us, 2);
  EXPECT_EQ(trial.drift, 1);
  EXPECT_EQ(trial.throttle_mhz, 0);
}

TEST(TimingGuard, SamplesBelowTheSweepsClockAreSetApart) {
  TimingGuard guard({});
  for (int i = 0; i < 5; ++i) {
    Trial trial = timed(TrialKind::search, {100, 100}, {1980, 1980});
    guard.judge(trial);
  }
  Trial trial = timed(TrialKind::search, {100, 101, 150, 102, 103}, {1980, 1970, 1200, 1980, 1980});
  guard.judge(trial);
  EXPECT_EQ(trial.throttle_mhz, 0.9 * 1980);
  EXPECT_EQ(throttled_samples(trial), 1);
  EXPECT_EQ(samples_set_apart(trial), 1);
  EXPECT_EQ(counted_walls(trial), (std::vector<double>{100, 101, 102, 103}));
  EXPECT_EQ(trial.median_us, 101.5);
  EXPECT_EQ(trial.raw_median_us, 102);
  // With most of them slow there is nothing better to go by.
  Trial slow = timed(TrialKind::search, {150, 151, 100}, {1200, 1200, 1980});
  guard.judge(slow);
  EXPECT_EQ(throttled_samples(slow), 2);
  EXPECT_EQ(samples_set_apart(slow), 0);
  EXPECT_EQ(counted_walls(slow), (std::vector<double>{150, 151, 100}));
  EXPECT_EQ(slow.median_us, 150);
  // Half of them is enough to go by.
  Trial even = timed(TrialKind::search, {150, 151, 100, 102}, {1200, 1200, 1980, 1980});
  guard.judge(even);
  EXPECT_EQ(samples_set_apart(even), 2);
  EXPECT_EQ(even.median_us, 101);
}

void measure_base(TimingGuard& guard, const std::vector<double>& walls) {
  for (const double wall : walls) {
    Trial base = timed(TrialKind::base, around(wall));
    guard.judge(base);
    EXPECT_EQ(base.drift, 1);
    EXPECT_EQ(base.median_us, wall);
  }
}

TEST(TimingGuard, DriftOfTheBaseIsTakenOutOnceItStays) {
  TimingGuard guard({});
  measure_base(guard, {100, 104, 98, 112, 109});
  Trial early = timed(TrialKind::search, around(200));
  guard.judge(early);
  EXPECT_EQ(early.drift, 1);  // two of three
  measure_base(guard, {110});
  Trial late = timed(TrialKind::search, around(220));
  guard.judge(late);
  EXPECT_DOUBLE_EQ(late.drift, 1.1);
  EXPECT_DOUBLE_EQ(late.median_us, 200);
  EXPECT_DOUBLE_EQ(late.raw_median_us, 220);
  EXPECT_EQ(late.wall_us, around(220));  // as they were taken
}

// As a GPU at its power limit has it.
TEST(TimingGuard, ABaseThatJumpsToAndFroIsNoDrift) {
  TimingGuard guard({});
  measure_base(guard, {100, 113, 101, 112, 103, 111, 102, 113, 100});
  Trial trial = timed(TrialKind::search, around(200));
  guard.judge(trial);
  EXPECT_EQ(trial.drift, 1);
  // Nor is a start on a cool one, by itself.
  TimingGuard warmed({});
  measure_base(warmed, {100, 112, 110, 111, 113, 110});
  Trial later = timed(TrialKind::search, around(220));
  warmed.judge(later);
  EXPECT_EQ(later.drift, 1);
}

TEST(TimingGuard, ALogTeachesItWhatTheSweepKnew) {
  TimingGuard first({});
  std::vector<Trial> log;
  for (const double wall : {100.0, 99.0, 101.0, 119.0, 120.0, 121.0}) {
    log.push_back(timed(TrialKind::base, around(wall), std::vector<double>(11, 1500 + wall)));
    first.judge(log.back());
  }
  TimingGuard second({});
  for (const Trial& trial : log) {
    second.learn(trial);
  }
  Trial a = timed(TrialKind::search, around(300), std::vector<double>(11, 1600));
  Trial b = a;
  first.judge(a);
  second.judge(b);
  EXPECT_EQ(a, b);
  EXPECT_DOUBLE_EQ(a.drift, 1.2);
}

}  // namespace
}  // namespace fusescope::sweep
