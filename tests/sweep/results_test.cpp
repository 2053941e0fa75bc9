#include "sweep/results.hpp"

#include <gtest/gtest.h>

#include "base/random.hpp"
#include "sweep/finalists.hpp"

namespace fusescope::sweep {
namespace {

Trial measured(int comm_sms, std::vector<double> walls, TrialKind kind = TrialKind::search,
               int visit = 0) {
  Trial trial;
  trial.id = comm_sms;
  trial.kind = kind;
  trial.visit = visit;
  trial.config.dispatch_comm_sms = comm_sms;
  trial.wall_us = std::move(walls);
  set_medians(trial);
  return trial;
}

TEST(Results, PoolVisitsNormalised) {
  Trial first = measured(8, {100, 102});
  Trial second = measured(8, {110, 112.2}, TrialKind::search, 1);
  second.drift = 1.1;
  set_medians(second);
  first.seconds = second.seconds = 0.5;
  const std::vector<Trial> results = latest({first, second});
  ASSERT_EQ(results.size(), 1u);
  EXPECT_EQ(results[0].wall_us.size(), 4u);
  EXPECT_DOUBLE_EQ(results[0].median_us, 101);
  EXPECT_DOUBLE_EQ(results[0].raw_median_us, 106);
  EXPECT_EQ(results[0].pooled, (std::vector<int>{2, 2}));
  EXPECT_EQ(results[0].seconds, 1);
  EXPECT_EQ(latest(results), results);  // results stay as they are
}

TEST(Results, LeaveBaseMeasurementsOutAndKeepTheLastOfEachRung) {
  Trial rung = measured(4, {50}, TrialKind::rung);
  rung.label = "tuned";
  Trial later = measured(12, {40}, TrialKind::rung);
  later.label = "tuned";
  const std::vector<Trial> results =
      latest({measured(8, {100}), measured(8, {90}, TrialKind::base), rung, later});
  ASSERT_EQ(results.size(), 2u);
  EXPECT_EQ(results[0].median_us, 100);
  EXPECT_EQ(results[1].config.dispatch_comm_sms, 12);
  EXPECT_EQ(best_trial(results)->median_us, 100);  // rungs take no part
}

TEST(Results, AConfigThatFailedInTheEndIsFailed) {
  Trial failed = measured(8, {}, TrialKind::search, 1);
  failed.verdict = Verdict::hang;
  const std::vector<Trial> results = latest({measured(8, {100}), failed, measured(16, {120})});
  EXPECT_EQ(results[0].verdict, Verdict::hang);
  EXPECT_EQ(best_trial(results)->config.dispatch_comm_sms, 16);
}

TEST(Results, AConfigThatWasOnlyTimedInTurnsAndFailedThereIsFailed) {
  Trial failed = measured(8, {}, TrialKind::finalist);
  failed.verdict = Verdict::launch_failure;
  const std::vector<Trial> results = latest({failed, measured(16, {120}, TrialKind::finalist)});
  ASSERT_EQ(results.size(), 2u);
  EXPECT_EQ(results[0].verdict, Verdict::launch_failure);
  EXPECT_EQ(best_trial(results)->config.dispatch_comm_sms, 16);
}

TEST(Finalists, AreTimedInTurnsAndStandFirst) {
  std::vector<Trial> log;
  Random random(3);
  const auto walls = [&](double middle) {
    std::vector<double> samples;
    for (int i = 0; i < 20; ++i) {
      samples.push_back(middle * (1 + 0.01 * (random.unit() - 0.5)));
    }
    return samples;
  };
  for (const int comm_sms : {4, 8, 12, 16, 20}) {
    log.push_back(measured(comm_sms, walls(100 + comm_sms)));
  }
  const std::vector<Given> turns = finalist_rounds(log, {3, 4, 10});
  ASSERT_EQ(turns.size(), 12u);
  EXPECT_EQ(turns[0].config.dispatch_comm_sms, 4);
  EXPECT_EQ(turns[3].config.dispatch_comm_sms, 8);  // every round starts with another one
  EXPECT_EQ(turns[3].visit, 1);
  // In turns, 8 and 12 turn out alike and 4 slower: what the search saw of it was luck.
  for (const Given& turn : turns) {
    const double wall = turn.config.dispatch_comm_sms == 4 ? 130 : 125;
    log.push_back(
        measured(turn.config.dispatch_comm_sms, walls(wall), TrialKind::finalist, turn.visit));
  }
  EXPECT_EQ(finalist_rounds(log, {3, 4, 10}).size(), 12u);
  const std::vector<Ranked> ranking = rank(log);
  ASSERT_EQ(ranking.size(), 5u);
  EXPECT_NE(ranking[0].trial.config.dispatch_comm_sms, 4);
  EXPECT_TRUE(ranking[1].ties_with_best);
  EXPECT_EQ(ranking[2].trial.config.dispatch_comm_sms, 4);
  EXPECT_FALSE(ranking[2].ties_with_best);
  // Not timed in turns: the machine is slower by then, and what counts is what the search saw of both.
  const Trial& best = ranking[0].trial;
  const Trial& other = ranking[3].trial;
  EXPECT_EQ(other.config.dispatch_comm_sms, 16);
  EXPECT_LT(other.median_us, best.median_us);
  EXPECT_NEAR(best.searched_us, 100 + best.config.dispatch_comm_sms, 1);
  EXPECT_NEAR(slower_than(other, best), 116.0 / (100 + best.config.dispatch_comm_sms) - 1, 0.01);
  EXPECT_FALSE(ranking[3].ties_with_best);
}

TEST(Finalists, TieWithOneThatWasNoneWhereTheSearchCouldNotTellThem) {
  std::vector<Trial> log = {measured(4, {99, 100, 101, 100, 99, 101}),
                            measured(8, {100, 101, 102, 101, 100, 102}),
                            measured(12, {100, 101, 102, 101, 100, 103})};
  for (const Given& turn : finalist_rounds(log, {2, 4, 10})) {
    log.push_back(
        measured(turn.config.dispatch_comm_sms, {120, 121, 122}, TrialKind::finalist, turn.visit));
  }
  const std::vector<Ranked> ranking = rank(log);
  ASSERT_EQ(ranking.size(), 3u);
  EXPECT_EQ(ranking[2].trial.kind, TrialKind::search);
  EXPECT_TRUE(ranking[2].ties_with_best);
}

TEST(Finalists, AreNoneWithoutNoise) {
  EXPECT_TRUE(finalist_rounds({measured(4, {100}), measured(8, {101})}, {4, 4, 10}).empty());
}

TEST(CompareRounds, WhatDisturbsARoundDisturbsBoth) {
  // Rounds differ by far more than the configs do, and both have their share of it.
  RoundSamples a;
  RoundSamples b;
  for (int round = 0; round < 8; ++round) {
    const double level = 100 + 10 * (round % 2);
    a.push_back({level, level, level});
    b.push_back({level * 1.01, level * 1.01, level * 1.01});
  }
  const RatioInterval slower = compare_rounds(a, b);
  EXPECT_NEAR(slower.ratio, 0.01, 1e-9);
  EXPECT_FALSE(slower.tie());
  EXPECT_TRUE(compare_rounds(a, a).tie());
}

}  // namespace
}  // namespace fusescope::sweep
