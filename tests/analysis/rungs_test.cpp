// The counterfactual rungs: medians and costs that telescope, intervals that say what is noise, and whole
// waves.
#include "analysis/rungs.hpp"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <random>
#include <stdexcept>

#include "layer/shape.hpp"

namespace fusescope::analysis {
namespace {

using Walls = std::array<RungWalls, kRungs.size()>;

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
  const std::vector<KernelWaves> waves = kernel_waves(problem, config, 132);
  ASSERT_EQ(waves.size(), 2u);
  EXPECT_EQ(waves[0].tiles, 128 * 6);
  EXPECT_EQ(waves[0].waves_all(), 6);
  EXPECT_EQ(waves[0].waves_split(), 7);
  EXPECT_EQ(waves[1].tiles, 128 * 16);
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

}  // namespace
}  // namespace fusescope::analysis
