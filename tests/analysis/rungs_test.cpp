// The counterfactual rungs: medians and costs that telescope, intervals that say what is noise, and whole
// waves.
#include "analysis/rungs.hpp"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <random>
#include <stdexcept>

#include "analysis/rung_series.hpp"
#include "layer/shape.hpp"

namespace fusescope::analysis {
namespace {

using Walls = std::array<RungWalls, kRungs.size()>;

const DeviceLimits kDevice{"a device", 132, 227 * 1024};
constexpr std::array<double, kRungs.size()> kTrue = {600, 650, 700, 740, 740, 800};

// Rounds of three samples each; every round has its own clock, and every sample its own noise.
Walls noisy(double noise_us, int rounds = 12) {
  std::mt19937 random(7);
  std::normal_distribution<double> normal;
  Walls walls;
  for (int round = 0; round < rounds; ++round) {
    const double clock = 1 + 0.01 * normal(random);
    for (std::size_t i = 0; i < walls.size(); ++i) {
      std::vector<double>& samples = walls[i].emplace_back();
      for (int sample = 0; sample < 3; ++sample) {
        samples.push_back(kTrue[i] * clock + noise_us * normal(random));
      }
    }
  }
  return walls;
}

const Estimate& cost(const Rungs& rungs, RungCost which) {
  return rungs.costs[static_cast<std::size_t>(which)];
}

bool says(const Rungs& rungs, const std::string& part) {
  for (const std::string& sentence : rungs.sentences) {
    if (sentence.find(part) != std::string::npos) {
      return true;
    }
  }
  return false;
}

TEST(Rungs, TelescopeToTheFullLayer) {
  const Rungs rungs = make_rungs(noisy(2), {});
  double sum = rungs.compute().us;
  for (const Estimate& one : rungs.costs) {
    sum += one.us;
    EXPECT_LE(one.low, one.us);
    EXPECT_GE(one.high, one.us);
  }
  EXPECT_NEAR(sum, rungs.full().us, 1e-9);
  EXPECT_EQ(rungs.samples, 36);
  EXPECT_EQ(rungs.rounds, 12);
}

TEST(Rungs, IntervalsHoldWhatWasPutInAndExcludeNothingness) {
  const Rungs rungs = make_rungs(noisy(2), {});
  const Estimate& tax = cost(rungs, RungCost::sm_tax);
  EXPECT_LE(tax.low, 50);
  EXPECT_GE(tax.high, 50);
  EXPECT_GT(tax.low, 30);
  const Estimate& ordering = cost(rungs, RungCost::ordering_loss);
  EXPECT_LE(ordering.low, 0);
  EXPECT_GE(ordering.high, 0);
  EXPECT_TRUE(says(rungs, "ordering loss is within noise"));
  EXPECT_FALSE(says(rungs, "SM tax is within noise"));
}

// A clock that differs from round to round is in all rungs alike: it widens no difference.
TEST(Rungs, DifferencesAreNarrowerThanWalls) {
  const Rungs rungs = make_rungs(noisy(0), {});
  EXPECT_LT(cost(rungs, RungCost::tail).half(), rungs.full().half() / 3);
}

TEST(Rungs, OneSampleHasNoInterval) {
  Walls walls;
  for (std::size_t i = 0; i < walls.size(); ++i) {
    walls[i] = {{kTrue[i]}};
  }
  const Rungs rungs = make_rungs(walls, {});
  EXPECT_EQ(rungs.full().half(), 0);
  EXPECT_EQ(cost(rungs, RungCost::contention).us, 50);
  EXPECT_FALSE(says(rungs, "within noise"));
}

TEST(Rungs, SamplesOfDifferentRoundsAreRefused) {
  Walls walls = noisy(1);
  walls[2].pop_back();
  EXPECT_THROW(make_rungs(walls, {}), std::invalid_argument);
  walls = noisy(1);
  walls[4][3].clear();
  EXPECT_THROW(make_rungs(walls, {}), std::invalid_argument);
}

TEST(Rungs, AWholeWaveIsNamed) {
  const Rungs more = make_rungs(noisy(1), {{"dispatch_gemm", 768, 128, 116}});
  EXPECT_TRUE(says(more, "6 and 7 after rounding up: the SM tax holds 1 whole wave."));
  const Rungs none = make_rungs(noisy(1), {{"dispatch_gemm", 768, 132, 128}});
  EXPECT_TRUE(says(none, "the split costs no whole wave"));
  const Rungs unsplit = make_rungs(noisy(1), {{"dispatch_gemm", 768, 132, 132}});
  EXPECT_FALSE(says(unsplit, "wave"));
}

TEST(Rungs, TilesOfTheSeedShape) {
  const Problem problem = make_problem(load_shape("seed-tp4"), parse_routing("balanced"));
  Config config;
  config.dispatch_comm_sms = 16;
  const std::vector<KernelWaves> waves = kernel_waves(problem, config, kDevice);
  ASSERT_EQ(waves.size(), 2u);
  EXPECT_EQ(waves[0].tiles, 128 * 6);
  EXPECT_EQ(waves[0].waves_all(), 6);
  EXPECT_EQ(waves[0].waves_split(), 7);
  EXPECT_EQ(waves[1].tiles, 128 * 16);
}

// 160 rows of each expert are two row blocks, and one tile of those that take a last row block along.
TEST(Rungs, WavesAreOfTilesAndNotOfRowBlocks) {
  const Shape shape{"even", 1, 160, 1024, 4, 4, 256, "made up for tests"};
  const Problem problem = make_problem(shape, parse_routing("balanced"));
  const DeviceLimits device{"an H200", 132, 227 * 1024, true, true};
  Config config;
  config.tile = TileShape::m128n256;
  EXPECT_EQ(kernel_waves(problem, config, device)[0].tiles, 4 * 2 * 2);
  config.tile = TileShape::m160n256;
  EXPECT_EQ(kernel_waves(problem, config, device)[0].tiles, 4 * 2);
  EXPECT_EQ(kernel_waves(problem, config, device)[1].tiles, 4 * 4);
}

TEST(Rungs, JsonHasEveryCostByName) {
  const nlohmann::json json =
      nlohmann::json::parse(to_json(make_rungs(noisy(1), {{"dispatch_gemm", 768, 128, 116}})));
  EXPECT_EQ(json["walls_us"].size(), kRungs.size());
  for (const char* called : {"SM tax", "contention", "arrival limit", "ordering loss", "tail"}) {
    EXPECT_TRUE(json["costs_us"].contains(called)) << called;
  }
  EXPECT_EQ(json["waves"][0]["waves_split"], 7);
}

TEST(Rungs, AreHeldAgainstTheRunsOwnMedian) {
  Rungs agree = make_rungs(noisy(2), {});
  hold_against(agree, agree.full().us + 0.5 * agree.full().half(), 1);
  ASSERT_TRUE(agree.telescoping.has_value());
  EXPECT_TRUE(agree.telescoping->agrees());
  EXPECT_NE(agree.sentences.front().find("within their 95% intervals"), std::string::npos);
  EXPECT_EQ(agree.sentences.front().find("Warning"), std::string::npos);

  Rungs apart = make_rungs(noisy(2), {});
  hold_against(apart, apart.full().us - 2 * apart.full().half() - 3, 1);
  EXPECT_FALSE(apart.telescoping->agrees());
  EXPECT_EQ(apart.sentences.front().rfind("Warning: ", 0), 0U);
  EXPECT_NE(rungs_text(apart).find("not of the run's wall"), std::string::npos);
  EXPECT_FALSE(nlohmann::json::parse(to_json(apart)).at("telescoping").at("agrees").get<bool>());
}

TEST(Rungs, OfASimulationSumToItsWallExactly) {
  Walls walls;
  for (std::size_t i = 0; i < walls.size(); ++i) {
    walls[i] = {{kTrue[i]}};
  }
  Rungs rungs = make_rungs(walls, {});
  hold_against(rungs, kTrue.back(), 0);
  EXPECT_TRUE(rungs.telescoping->agrees());
  hold_against(rungs, kTrue.back() - 0.1, 0);
  EXPECT_FALSE(rungs.telescoping->agrees());
}

TEST(Rungs, WaitingIsArrivalLimitAndOrderingLoss) {
  const Rungs rungs = make_rungs(noisy(2), {});
  EXPECT_NEAR(rungs.waiting.us,
              cost(rungs, RungCost::arrival_limit).us + cost(rungs, RungCost::ordering_loss).us,
              1e-9);
  EXPECT_LE(rungs.waiting.low, rungs.waiting.us);
  EXPECT_GE(rungs.waiting.high, rungs.waiting.us);
}

// 768 tiles: 6 waves on 128 SMs, 7 on 124 and on 116.
TEST(RungSeries, NamesTheStepWhereOneMoreWaveIsNeeded) {
  const Problem problem = make_problem(load_shape("seed-tp2"), parse_routing("balanced"));
  RungSeries series{"dispatch_comm_sms", {"4", "8", "16"}, {}};
  for (const int sms : {4, 8, 16}) {
    Config config;
    config.dispatch_comm_sms = sms;
    series.rungs.push_back(make_rungs(noisy(0), kernel_waves(problem, config, kDevice)));
  }
  const std::vector<std::string> steps = wave_steps(series);
  ASSERT_EQ(steps.size(), 1U);  // kernel 2's split is the same at every value
  EXPECT_NE(steps[0].find("dispatch_gemm: from dispatch_comm_sms 4 to 8 its 768 tiles go from 6 "
                          "waves on 128 SMs to 7 on 124"),
            std::string::npos)
      << steps[0];
  const std::string text = series_text(series);
  EXPECT_NE(text.find("7 on 116 SMs"), std::string::npos);
  EXPECT_NE(text.find("+ waiting"), std::string::npos);
}

}  // namespace
}  // namespace fusescope::analysis
