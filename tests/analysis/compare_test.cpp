// Two runs step by step: directions, noise, and what cannot be told.

#include "analysis/compare.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>

#include "analysis/advice.hpp"

namespace fusescope::analysis {
namespace {

ComparedRun run(const std::string& name, std::vector<double> samples,
                timeline::Provenance provenance = timeline::Provenance::measured) {
  ComparedRun run;
  run.name = name;
  run.problem = "seed-tp2 (R=2 T=1024), uniform seed 1";
  run.device = "device";
  run.provenance = provenance;
  run.samples_us = std::move(samples);
  return run;
}

// `count` walls around `middle`, `apart` from one to the next.
std::vector<double> walls(double middle, double apart, int count = 21) {
  std::vector<double> values;
  for (int i = 0; i < count; ++i) {
    values.push_back(middle + apart * (i - count / 2));
  }
  return values;
}

void give_path(ComparedRun& run, std::int64_t gemm_ns, std::int64_t drain_ns) {
  run.attribution.wall_ns = gemm_ns + drain_ns;
  run.attribution.path.by_step[static_cast<std::size_t>(Step::gemm_1)] = gemm_ns;
  run.attribution.path.by_step[static_cast<std::size_t>(Step::push_drain)] = drain_ns;
}

TEST(Compare, ADifferenceFarBeyondTheSamplesIsBeyondNoise) {
  const Comparison comparison = compare(run("a", walls(90, 0.1)), run("b", walls(100, 0.1)));
  EXPECT_EQ(comparison.wall.change, Change::faster);
  EXPECT_DOUBLE_EQ(comparison.wall.delta_us(), -10);
  ASSERT_TRUE(comparison.interval);
  EXPECT_LT(comparison.interval->low_us, -10);
  EXPECT_GT(comparison.interval->high_us, -10);
  EXPECT_LT(comparison.interval->high_us, -8);
  EXPECT_EQ(compare(run("b", walls(100, 0.1)), run("a", walls(90, 0.1))).wall.change,
            Change::slower);
}

TEST(Compare, ADifferenceWithinTheSamplesIsNoise) {
  const Comparison comparison = compare(run("a", walls(99.9, 1)), run("b", walls(100, 1)));
  EXPECT_EQ(comparison.wall.change, Change::within_noise);
}

TEST(Compare, WithoutSamplesItCannotTell) {
  ComparedRun a = run("a", {});
  ComparedRun b = run("b", walls(100, 0.1));
  give_path(a, 50'000, 20'000);
  give_path(b, 50'000, 40'000);
  const Comparison comparison = compare(a, b);
  EXPECT_EQ(comparison.wall.change, Change::cannot_tell);
  // Not the median of one beside the iteration of the other.
  EXPECT_DOUBLE_EQ(comparison.wall.delta_us(), -20);
  for (const Difference& step : comparison.steps) {
    EXPECT_EQ(step.change, Change::cannot_tell) << step.name;
  }
  EXPECT_FALSE(comparison.caveats.empty());
  EXPECT_EQ(compare(run("a", walls(90, 1, 3)), b).wall.change, Change::cannot_tell);
}

TEST(Compare, StepsAddUpAndCountBeyondTheNoiseOfOneIteration) {
  ComparedRun a = run("a", walls(90, 0.1));
  ComparedRun b = run("b", walls(100, 0.1));
  give_path(a, 50'500, 40'000);
  give_path(b, 50'000, 50'000);
  const Comparison comparison = compare(a, b);
  ASSERT_EQ(comparison.steps.size(), 2U);
  EXPECT_EQ(comparison.steps[0].name, "push drain");
  EXPECT_EQ(comparison.steps[0].change, Change::faster);
  EXPECT_EQ(comparison.steps[1].change, Change::within_noise);
  EXPECT_DOUBLE_EQ(comparison.steps[0].delta_us() + comparison.steps[1].delta_us(), -9.5);
  EXPECT_NE(comparison.headline.find("push drain -10.0 us"), std::string::npos);
}

TEST(Compare, SimulationsWithoutNoiseAreExact) {
  const auto simulated = timeline::Provenance::simulated;
  const Comparison comparison = compare(run("a", {99.99}, simulated), run("b", {100}, simulated));
  EXPECT_EQ(comparison.wall.change, Change::faster);
  EXPECT_FALSE(comparison.interval);
  EXPECT_EQ(compare(run("a", {100}, simulated), run("b", {100}, simulated)).wall.change,
            Change::unchanged);
}

TEST(Compare, WallsTakenUnderAnotherLoadAreSaid) {
  ComparedRun a = run("a", walls(90, 0.1));
  ComparedRun b = run("b", walls(100, 0.1));
  const auto said = [&] {
    const std::vector<std::string> caveats = compare(a, b).caveats;
    return std::count_if(caveats.begin(), caveats.end(), [](const std::string& caveat) {
      return caveat.find(
                 "a was measured with each iteration after a rest of 10 ms, b with "
                 "iterations back to back") != std::string::npos;
    });
  };
  a.sampling = "each iteration after a rest of 10 ms";
  EXPECT_EQ(said(), 0) << "of b it is not known";
  b.sampling = "iterations back to back";
  EXPECT_EQ(said(), 1);
  EXPECT_NE(to_json(compare(a, b)).find("\"sampling\": \"iterations back to back\""),
            std::string::npos);
  b.sampling = a.sampling;
  EXPECT_TRUE(compare(a, b).caveats ==
              compare(run("a", walls(90, 0.1)), run("b", walls(100, 0.1))).caveats);
}

TEST(Compare, UnlikeProblemsAreNamedByWhatDiffers) {
  const ComparedRun a = run("a", {});
  ComparedRun b = run("b", {});
  EXPECT_EQ(unlike(a, b), "");
  b.problem = "seed-tp2 (R=2 T=1024), balanced seed 1";
  EXPECT_EQ(unlike(a, b), "the routings differ: uniform seed 1 against balanced seed 1");
  b.problem = "seed-tp4 (R=4 T=512), uniform seed 1";
  EXPECT_NE(unlike(a, b).find("the shapes differ"), std::string::npos);
  EXPECT_NE(compare(a, b).caveats.front().find("shapes differ"), std::string::npos);
}

Suggestion change(const std::string& knob, int to) {
  Suggestion suggestion;
  suggestion.knob = knob;
  suggestion.to = std::to_string(to);
  suggestion.config.dispatch_comm_sms = to;
  return suggestion;
}

TEST(Advice, OnlyGainsBeyondNoiseAreSuggestedAndAMeasurementOverrulesTheModel) {
  const std::vector<Suggestion> asked = {change("x", 1), change("x", 2), change("y", 3),
                                         change("z", 4), change("w", 5)};
  const auto simulated = [](const Config& config) -> std::optional<Effect> {
    constexpr std::array<double, 6> kDelta = {0, -5, -9, -20, -0.5, 0};
    return config.dispatch_comm_sms == 5
               ? std::nullopt
               : std::optional(
                     Effect{kDelta[static_cast<std::size_t>(config.dispatch_comm_sms)], 0});
  };
  const auto measured = [](const Config& config) -> std::optional<Effect> {
    return config.dispatch_comm_sms == 3 ? std::optional(Effect{3, 1}) : std::nullopt;
  };
  const Advice advice = advise(asked, 1, measured, simulated);
  ASSERT_EQ(advice.ranked.size(), 1U);
  EXPECT_EQ(advice.ranked[0].knob + advice.ranked[0].to, "x2");
  ASSERT_EQ(advice.refuted.size(), 1U);
  EXPECT_EQ(advice.refuted[0].knob, "y");
  EXPECT_NE(sentence(advice.refuted[0]).find("predicts -20.0 us, measured +3.0 us +-1.0"),
            std::string::npos);
  EXPECT_TRUE(advise(asked, 1, {}, {}).ranked.empty());
}

}  // namespace
}  // namespace fusescope::analysis
