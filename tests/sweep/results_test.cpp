#include "sweep/results.hpp"

#include <gtest/gtest.h>

#include <algorithm>

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

std::vector<double> around(double middle) {
  std::vector<double> walls;
  for (int i = -10; i <= 10; ++i) {
    walls.push_back(middle + 0.1 * i);
  }
  return walls;
}

std::vector<int> of_first_round(const std::vector<Given>& turns, std::size_t configs) {
  std::vector<int> comm_sms;
  for (std::size_t i = 0; i < std::min(configs, turns.size()); ++i) {
    comm_sms.push_back(turns[i].config.dispatch_comm_sms);
  }
  return comm_sms;
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

// Five configs at 1000, 1001, ... us, the base measured before the first and after the last but one.
std::vector<Trial> search_with_base(double base_us) {
  std::vector<Trial> log;
  for (int i = 0; i < 5; ++i) {
    if (i == 0 || i == 4) {
      log.push_back(measured(50, around(base_us), TrialKind::base, i));
      log.back().id = i == 0 ? 0 : 1;
    }
    log.push_back(measured(4 * i, around(1000 + i)));
    log.back().id = i;
  }
  return log;
}

// As a session goes on: the base as the worker's first, then the turns.
void play_turns(std::vector<Trial>& log, double base_us, double others_us) {
  const std::vector<Given> turns = finalist_rounds(log, {4, 6, 10});
  log.push_back(measured(50, around(base_us / 2), TrialKind::base, 2));
  for (std::size_t i = 0; i < turns.size(); ++i) {
    const int comm_sms = turns[i].config.dispatch_comm_sms;
    log.push_back(measured(comm_sms, around(comm_sms == 50 ? base_us : others_us + comm_sms),
                           TrialKind::finalist, turns[i].visit));
    log.back().id = static_cast<int>(i);
  }
}

TEST(Finalists, ABaseThatIsFasterThanEveryTrialWins) {
  std::vector<Trial> log = search_with_base(963);
  const std::vector<Given> before = finalist_rounds(log, {4, 6, 10});
  EXPECT_EQ(of_first_round(before, 4), (std::vector<int>{50, 0, 4, 8}));
  play_turns(log, 970, 999);
  const std::vector<Ranked> ranking = rank(log);
  ASSERT_EQ(ranking.size(), 6u);
  const Trial& best = ranking.front().trial;
  EXPECT_EQ(best.config.dispatch_comm_sms, 50);
  EXPECT_EQ(best.kind, TrialKind::finalist);
  EXPECT_DOUBLE_EQ(best.median_us, 970);
  EXPECT_DOUBLE_EQ(best.searched_us, 963);
  EXPECT_EQ(best_trial(log)->config, best.config);
  EXPECT_EQ(best.id, 5);  // 0 to 4 are the search's
  EXPECT_EQ(of_first_round(finalist_rounds(log, {4, 6, 10}), 4), (std::vector<int>{50, 0, 4, 8}))
      << "the turns' own measurements of the base change who takes part";
}

TEST(Finalists, AFailedTurnLeavesWhatTheBaseHadBefore) {
  std::vector<Trial> log = search_with_base(963);
  play_turns(log, 970, 999);
  for (Trial& trial : log) {
    if (trial.kind == TrialKind::finalist && trial.config.dispatch_comm_sms == 50) {
      trial.verdict = Verdict::hang;
    }
  }
  const std::vector<Ranked> ranking = rank(log);
  EXPECT_EQ(ranking.front().trial.config.dispatch_comm_sms, 0);
  EXPECT_EQ(ranking[3].trial.config.dispatch_comm_sms, 50);
  EXPECT_EQ(ranking[3].trial.kind, TrialKind::search);
}

TEST(Finalists, ABaseThatIsSlowerThanTheLastOfThemIsNone) {
  const std::vector<Trial> log = search_with_base(1010);
  std::vector<Trial> without = log;
  std::erase_if(without, [](const Trial& trial) { return trial.kind == TrialKind::base; });
  const std::vector<Given> turns = finalist_rounds(log, {4, 6, 10});
  const std::vector<Given> same = finalist_rounds(without, {4, 6, 10});
  ASSERT_EQ(turns.size(), same.size());
  for (std::size_t i = 0; i < turns.size(); ++i) {
    EXPECT_EQ(turns[i].config, same[i].config) << i;
  }
  EXPECT_EQ(rank(log).size(), 5u);
}

TEST(Finalists, ABaseThatTheSearchProposedIsOneCandidate) {
  std::vector<Trial> log = search_with_base(963);
  log.insert(log.begin(), measured(50, around(1020)));
  log.front().id = 5;
  EXPECT_EQ(of_first_round(finalist_rounds(log, {6, 6, 10}), 6),
            (std::vector<int>{50, 0, 4, 8, 12, 16}));
  EXPECT_EQ(finalist_rounds(log, {7, 6, 10}).size(), 36u);
}

TEST(Finalists, ABaseThatAConstraintExcludesOrThatFailedIsNone) {
  std::vector<Trial> log = search_with_base(963);
  EXPECT_EQ(of_first_round(finalist_rounds(log, {4, 6, 10}, false), 4),
            (std::vector<int>{0, 4, 8, 12}));
  for (Trial& trial : log) {
    trial.verdict = trial.kind == TrialKind::base ? Verdict::wrong_output : trial.verdict;
  }
  EXPECT_EQ(of_first_round(finalist_rounds(log, {4, 6, 10}), 4), (std::vector<int>{0, 4, 8, 12}));
}

TEST(Finalists, TheBaseCompetesWithTheDriftDividedOut) {
  // The machine is 10% slower from the fourth measurement of the base on; trials' medians are without it.
  std::vector<Trial> log;
  for (int i = 0; i < 12; ++i) {
    log.push_back(measured(50, around(i < 3 ? 990 : 1089), TrialKind::base, i));
    log.push_back(measured(i, around(1000 + i)));
  }
  EXPECT_EQ(finalist_rounds(log, {4, 6, 10}).front().config.dispatch_comm_sms, 50);
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
