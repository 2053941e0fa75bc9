// The strategies that learn: on a made-up landscape of 1600 configs with noise.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>

#include "base/random.hpp"
#include "sweep/shuffle.hpp"
#include "sweep/strategy.hpp"
#include "sweep_fixture.hpp"

namespace fusescope::sweep {
namespace {

const DeviceLimits kDevice{"test", 110, 101376};

SweepConfig space_of(int splits) {
  Json document = test::small_sweep_document();
  document["axes"] = {{"dispatch_comm_sms", Json::array()},
                      {"combine_comm_sms", Json::array()},
                      {"pull_order", {"by_slot", "by_token"}},
                      {"all_hands", {true, false}}};
  for (int i = 1; i <= splits; ++i) {
    document["axes"]["dispatch_comm_sms"].push_back(2 * i);
    document["axes"]["combine_comm_sms"].push_back(2 * i);
  }
  return parse_sweep_config(document, "f");
}

// A valley at 24 and 10, other knobs worth some percent. [us]
double wall(const Config& config) {
  const double a = (config.dispatch_comm_sms - 24) / 24.0;
  const double b = (config.combine_comm_sms - 10) / 24.0;
  return 1000 * (1 + 0.4 * a * a + 0.3 * b * b + (config.all_hands ? 0 : 0.06) +
                 (config.pull_order == PullOrder::by_slot ? 0 : 0.03));
}

Trial measure(const Proposal& proposal, int full_samples = 20) {
  Trial trial;
  trial.config = proposal.config;
  trial.visit = proposal.visit;
  Random random(hash(proposal.config), static_cast<std::uint64_t>(proposal.visit));
  const int samples = proposal.samples > 0 ? proposal.samples : full_samples;
  for (int i = 0; i < samples; ++i) {
    trial.wall_us.push_back(wall(proposal.config) * (1 + 0.01 * (random.unit() - 0.5)));
  }
  set_medians(trial);
  return trial;
}

struct Course {
  std::vector<Proposal> proposals;
  std::size_t samples = 0;
  std::size_t samples_to_2_percent = 0;  // 0: never
  double best_us = 1e9;
};

// Runs a strategy to its end, at most `most` measurements.
Course follow(Strategy& strategy, std::size_t most = 100'000) {
  Course course;
  while (course.proposals.size() < most) {
    const std::optional<Proposal> proposal = strategy.next();
    if (!proposal) {
      break;
    }
    const Trial trial = measure(*proposal);
    course.proposals.push_back(*proposal);
    course.samples += trial.wall_us.size();
    course.best_us = std::min(course.best_us, wall(proposal->config));
    if (course.samples_to_2_percent == 0 && wall(proposal->config) < 1020) {
      course.samples_to_2_percent = course.samples;
    }
    strategy.tell(trial);
  }
  return course;
}

std::vector<double> perfect(const std::vector<Config>& configs) {
  std::vector<double> walls;
  for (const Config& config : configs) {
    walls.push_back(wall(config));
  }
  return walls;
}

// A model of another machine: its valley lies elsewhere, and some configs it does not know.
std::vector<double> mistaken(const std::vector<Config>& configs) {
  std::vector<double> walls;
  for (Config config : configs) {
    const bool unknown = config.dispatch_comm_sms == 24 && config.combine_comm_sms == 10;
    config.dispatch_comm_sms += 6;
    config.combine_comm_sms -= 6;
    walls.push_back(unknown ? std::numeric_limits<double>::quiet_NaN() : 2 * wall(config));
  }
  return walls;
}

class Learning : public testing::TestWithParam<std::string> {
 protected:
  std::unique_ptr<Strategy> make(const SearchSpace& space, std::uint64_t seed) const {
    if (GetParam() == "local") {
      return make_local(space, sweep_.base, seed);
    }
    return GetParam() == "racing" ? make_racing(space, sweep_.base, {}, seed)
                                  : make_sim_guided(space, {}, mistaken);
  }
  SweepConfig sweep_ = space_of(20);
  SearchSpace space_{sweep_, kDevice};
};

TEST_P(Learning, ComesWithinTwoPercentOnATenthOfTheSamples) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    const Course course = follow(*make(space_, seed), GetParam() == "local" ? 200 : 100'000);
    EXPECT_GT(course.samples_to_2_percent, 0u) << "seed " << seed;
    EXPECT_LT(course.samples_to_2_percent, 1600u * 20 / 10) << "seed " << seed;
  }
}

TEST_P(Learning, RepeatsItself) {
  const Course first = follow(*make(space_, 4), 300);
  const Course second = follow(*make(space_, 4), 300);
  ASSERT_EQ(first.proposals.size(), second.proposals.size());
  for (std::size_t i = 0; i < first.proposals.size(); ++i) {
    EXPECT_EQ(first.proposals[i].config, second.proposals[i].config);
    EXPECT_EQ(first.proposals[i].samples, second.proposals[i].samples);
  }
}

TEST_P(Learning, DoesNotDependOnTheOrderInWhichTrialsEnd) {
  const Course in_order = follow(*make(space_, 2), 200);
  const auto strategy = make(space_, 2);
  Random random(5);
  std::vector<Proposal> proposals;
  while (proposals.size() < 200) {
    std::vector<Proposal> round;
    while (const std::optional<Proposal> proposal = strategy->next()) {
      round.push_back(*proposal);
    }
    if (round.empty()) {
      break;
    }
    proposals.insert(proposals.end(), round.begin(), round.end());
    shuffle(round, random);
    for (const Proposal& proposal : round) {
      strategy->tell(measure(proposal));
    }
  }
  for (std::size_t i = 0; i < std::min(proposals.size(), in_order.proposals.size()); ++i) {
    EXPECT_EQ(proposals[i].config, in_order.proposals[i].config) << i;
  }
}

TEST_P(Learning, NeverProposesWhatConstraintsExcludeNorAMeasurementTwice) {
  Json document = sweep_.document;
  document["constraints"] = {"dispatch_comm_sms != 24", "combine_comm_sms > 4"};
  const SweepConfig sweep = parse_sweep_config(document, "f");
  const SearchSpace space(sweep, kDevice);
  std::set<std::pair<std::uint64_t, int>> seen;
  const Course course = follow(*make(space, 1), 2000);
  for (const Proposal& proposal : course.proposals) {
    EXPECT_TRUE(space.allowed(proposal.config));
    EXPECT_TRUE(seen.emplace(hash(proposal.config), proposal.visit).second);
  }
  EXPECT_LT(course.best_us, 1030);
}

TEST_P(Learning, GoesOnWhenConfigsFail) {
  const auto strategy = make(space_, 3);
  double best = 1e9;
  for (int measurements = 0; measurements < 400; ++measurements) {
    const std::optional<Proposal> proposal = strategy->next();
    if (!proposal) {
      break;
    }
    Trial trial = measure(*proposal);
    if (proposal->config.all_hands) {
      trial = Trial{};
      trial.config = proposal->config;
      trial.visit = proposal->visit;
      trial.verdict = Verdict::crashed;
    } else {
      best = std::min(best, wall(proposal->config));
    }
    strategy->tell(trial);
  }
  EXPECT_LT(best, 1060 * 1.03);
}

INSTANTIATE_TEST_SUITE_P(Strategies, Learning, testing::Values("local", "racing", "sim_guided"),
                         [](const testing::TestParamInfo<std::string>& each) {
                           return each.param;
                         });

TEST(SimGuided, MeasuresInTheOrderOfThePrediction) {
  const SweepConfig sweep = space_of(20);
  const SearchSpace space(sweep, kDevice);
  const auto strategy = make_sim_guided(space, {}, perfect);
  const Config first = strategy->next()->config;
  EXPECT_EQ(first.dispatch_comm_sms, 24);
  EXPECT_EQ(first.combine_comm_sms, 10);
  EXPECT_TRUE(first.all_hands);
}

// The model is wrong about the best value of an axis, wherever the others are.
TEST(SimGuided, TriesEveryValueOfEveryAxisFirst) {
  const SweepConfig sweep = space_of(20);
  const SearchSpace space(sweep, kDevice);
  const auto prejudiced = [](const std::vector<Config>& configs) {
    std::vector<double> walls = perfect(configs);
    for (std::size_t i = 0; i < configs.size(); ++i) {
      walls[i] += configs[i].dispatch_comm_sms == 24 ? 10'000 : 0;
    }
    return walls;
  };
  const auto strategy = make_sim_guided(space, {}, prejudiced);
  std::set<int> dispatch;
  std::set<int> combine;
  while (const std::optional<Proposal> proposal = strategy->next()) {
    dispatch.insert(proposal->config.dispatch_comm_sms);
    combine.insert(proposal->config.combine_comm_sms);
  }
  const auto values = [&](std::size_t axis) { return sweep.axes.at(axis).values.size(); };
  EXPECT_EQ(dispatch.size(), values(0));
  EXPECT_EQ(combine.size(), values(1));
  const Course course = follow(*make_sim_guided(space, {}, prejudiced), 100'000);
  EXPECT_GT(course.samples_to_2_percent, 0u);
  EXPECT_LT(course.samples_to_2_percent, 1600u * 20 / 10);
}

TEST(Racing, SpendsItsSamplesOnTheFast) {
  const SweepConfig sweep = space_of(20);
  const SearchSpace space(sweep, kDevice);
  const Course course = follow(*make_racing(space, sweep.base, {}, 1));
  std::map<std::uint64_t, int> samples;
  std::map<std::uint64_t, double> walls;
  for (const Proposal& proposal : course.proposals) {
    samples[hash(proposal.config)] += proposal.samples;
    walls[hash(proposal.config)] = wall(proposal.config);
  }
  for (const auto& [config, taken] : samples) {
    EXPECT_LE(taken, 20);
    if (walls[config] > course.best_us * 1.1) {
      EXPECT_EQ(taken, 5);  // out after its first heat
    }
  }
}

TEST(Shards, DealEachConfigToOne) {
  SweepConfig sweep = space_of(20);
  std::set<std::uint64_t> seen;
  std::size_t total = 0;
  for (int index = 1; index <= 5; ++index) {
    sweep.shard = {index, 5};
    const SearchSpace space(sweep, kDevice);
    const std::vector<long long> mine = space.allowed_indices();
    EXPECT_NEAR(static_cast<double>(mine.size()), 320, 80);
    total += mine.size();
    for (const long long config : mine) {
      seen.insert(hash(space.at(config)));
    }
  }
  EXPECT_EQ(total, 1600u);
  EXPECT_EQ(seen.size(), 1600u);
  EXPECT_NE(test::input_error([] { parse_shard("5/4", "--shard"); }).find("\"5/4\" is not a shard"),
            std::string::npos);
  for (const char* text : {"", "1", "0/2", "1/0", "a/b", "1/2x", "-1/2"}) {
    test::input_error([&] { parse_shard(text, "--shard"); });
  }
}

}  // namespace
}  // namespace fusescope::sweep
