// Fitting a profile: walls that the simulator made on a changed profile lead back to it.

#include "engine/sim/calibrate.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "base/error.hpp"
#include "engine/sim/nelder_mead.hpp"
#include "engine/sim/simulate.hpp"

namespace fusescope::engine::sim {
namespace {

TEST(Minimise, FindsTheValleyOfRosenbrock) {
  const auto rosenbrock = [](const std::vector<double>& x) {
    return std::pow(1 - x[0], 2) + 100 * std::pow(x[1] - x[0] * x[0], 2);
  };
  const Minimum minimum = minimise(rosenbrock, {-1.2, 1}, 0.5, 1e-14, 2000);
  EXPECT_NEAR(minimum.at[0], 1, 1e-4);
  EXPECT_NEAR(minimum.at[1], 1, 1e-4);
}

TEST(Calibrate, SpearmanKnowsOrderAndTies) {
  EXPECT_DOUBLE_EQ(spearman({1, 2, 3, 4}, {10, 20, 30, 1000}), 1);
  EXPECT_DOUBLE_EQ(spearman({1, 2, 3, 4}, {4, 3, 2, 1}), -1);
  EXPECT_DOUBLE_EQ(spearman({1, 1, 1}, {1, 2, 3}), 0);
}

Problem problem() {
  Shape shape{"small", 2, 256, 2048, 16, 8, 128, "a test"};
  return make_problem(shape, parse_routing("uniform"));
}

std::vector<Observation> observations(const Problem& problem, const Profile& profile) {
  std::vector<Observation> all;
  for (const int comm : {1, 2, 4, 16}) {
    for (const int tokens : {2, 4, 8}) {
      for (const bool hands : {true, false}) {
        Observation each;
        each.config.dispatch_comm_sms = comm;
        each.config.combine_comm_sms = comm;
        each.config.tokens_per_block = tokens;
        each.config.all_hands = hands;
        const Iteration iteration =
            simulate(problem, each.config, profile, tables_for(problem, each.config), 1, false);
        each.wall_us = static_cast<double>(*std::max_element(iteration.rank_wall.begin(),
                                                             iteration.rank_wall.end())) /
                       1e3;
        all.push_back(each);
      }
    }
  }
  return all;
}

TEST(Calibrate, RecoversAChangedProfileFromItsWalls) {
  const Problem layer = problem();
  const Profile base = load_profile("h200-nvlink");
  Profile truth = base;
  truth.sm_store *= 0.6;
  truth.schedule_device *= 0.5;
  CalibrateOptions options;
  options.numbers = {"sm_store", "schedule_device", "activation_epilogue"};
  const Calibration fit = calibrate(layer, base, observations(layer, truth), options);
  ASSERT_EQ(fit.fitted.size(), 2U);
  EXPECT_NEAR(fit.profile.sm_store / truth.sm_store, 1, 0.03);
  EXPECT_NEAR(fit.profile.schedule_device / truth.schedule_device, 1, 0.03);
  // The activation is a kernel of its own in these configs: nothing tells what fusing it costs.
  EXPECT_EQ(fit.undetermined, std::vector<std::string>{"activation_epilogue"});
  EXPECT_GT(fit.before.median_error, 0.02);
  EXPECT_LT(fit.after.median_error, 0.005);
  EXPECT_EQ(fit.training + fit.after.configs, 24U);
  const Calibration again = calibrate(layer, base, observations(layer, truth), options);
  EXPECT_EQ(again.profile.sm_store, fit.profile.sm_store);
}

TEST(Calibrate, RefusesTooFewConfigsAndUnknownNumbers) {
  const Problem layer = problem();
  const Profile base = load_profile("h200-nvlink");
  std::vector<Observation> all = observations(layer, base);
  CalibrateOptions options;
  options.numbers = {"sm_stores"};
  try {
    calibrate(layer, base, all, options);
    FAIL();
  } catch (const InputError& error) {
    EXPECT_NE(std::string(error.what()).find("sm_store"), std::string::npos);
  }
  all.resize(5);
  EXPECT_THROW(calibrate(layer, base, all, {}), InputError);
}

}  // namespace
}  // namespace fusescope::engine::sim
