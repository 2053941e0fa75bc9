// The seed's story on the seed's kind of machine: fused but unordered loses to the serial layer, every
// feature helps, and the tuned split wins. Signs, not sizes; the figures are printed.
#include <gtest/gtest.h>

#include <cstdio>

#include "engine/sim/figures.hpp"
#include "sim_run.hpp"

namespace fusescope::engine::sim {
namespace {

Config unordered_form() {
  Config config;
  config.dispatch_comm_sms = config.combine_comm_sms = 16;
  config.pull_order = PullOrder::by_token;
  config.job_order = JobOrder::by_token;
  config.combine = Combine::block_per_job;
  config.all_hands = false;
  return config;
}

Config tuned_split(const Problem& problem, const Profile& profile, Config config) {
  Config best = config;
  double least = wall_us(problem, config, profile);
  for (const int dispatch : {8, 12, 16, 24}) {
    for (const int combine : {0, 4, 8, 16}) {
      config.dispatch_comm_sms = dispatch;
      config.combine_comm_sms = combine;
      const double now = wall_us(problem, config, profile);
      if (now < least) {
        least = now;
        best = config;
      }
    }
  }
  return best;
}

class SeedStory : public testing::TestWithParam<const char*> {};

TEST_P(SeedStory, HasItsSigns) {
  const Profile profile = load_profile(kSeedProfile);
  const Problem problem = problem_of("seed-tp4", GetParam());
  Config config = unordered_form();
  Config serial = config;
  serial.form = LayerForm::serial;
  const double serial_us = wall_us(problem, serial, profile);
  const auto rung = [&](const char* name, const Config& its_config) {
    const double now = wall_us(problem, its_config, profile);
    std::printf("%-14s %8.1f us  %+5.1f%% of serial\n", name, now, 100 * (now / serial_us - 1));
    return now;
  };

  rung("serial", serial);
  const double unordered = rung("unordered", config);
  config.pull_order = PullOrder::by_slot;
  const double pull_order = rung("+ pull order", config);
  config.job_order = JobOrder::by_ready;
  const double job_order = rung("+ job order", config);
  config.combine = Combine::dispenser;
  const double dispenser = rung("+ dispenser", config);
  config.all_hands = true;
  const double all_hands = rung("+ all hands", config);
  const double tuned = rung("+ tuned split", tuned_split(problem, profile, config));

  EXPECT_GT(unordered, 1.03 * serial_us);
  EXPECT_LT(pull_order, unordered);
  EXPECT_LT(job_order, pull_order);
  EXPECT_LT(dispenser, job_order);
  EXPECT_LT(all_hands, dispenser);
  EXPECT_LT(tuned, all_hands);
  EXPECT_LT(tuned, 0.9 * serial_us);
}

INSTANTIATE_TEST_SUITE_P(Routings, SeedStory, testing::Values("uniform", "balanced", "zipf:1.0"),
                         [](const auto& param_info) {
                           std::string name = param_info.param;
                           std::replace_if(
                               name.begin(), name.end(), [](char c) { return !std::isalnum(c); },
                               '_');
                           return name;
                         });

TEST(Figures, ArePredictedForEveryReference) {
  SimEngine engine(load_profile(kSeedProfile));
  const Problem problem = problem_of("seed-tp4", "balanced");
  const std::vector<FigurePrediction> predictions = predict_figures(
      engine, problem, unordered_form(), tuned_split(problem, engine.profile(), Config{}));
  for (const ReferenceFigure& reference : engine.profile().reference_figures) {
    const auto found = std::find_if(
        predictions.begin(), predictions.end(),
        [&](const FigurePrediction& prediction) { return prediction.name == reference.name; });
    ASSERT_NE(found, predictions.end()) << reference.name;
    std::printf("%-32s published %7.2f predicted %7.2f %s%s\n", reference.name.c_str(),
                reference.value, found->value, reference.unit.c_str(),
                reference.fitted ? " (fitted)" : "");
    EXPECT_EQ(found->unit, reference.unit);
    EXPECT_GT(found->value * reference.value, 0) << "the wrong sign: " << reference.name;
    if (reference.fitted) {
      EXPECT_NEAR(found->value, reference.value, 0.01 * std::abs(reference.value));
    }
  }
}

}  // namespace
}  // namespace fusescope::engine::sim
