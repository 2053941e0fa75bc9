#include "sweep/summary.hpp"

#include <gtest/gtest.h>

#include "sweep/exports.hpp"
#include "sweep_fixture.hpp"

namespace fusescope::sweep {
namespace {

Trial timed(int id, double median, double half, int comm_sms) {
  Trial trial;
  trial.id = id;
  trial.config.dispatch_comm_sms = comm_sms;
  trial.median_us = median;
  trial.half_ci_us = half;
  trial.wall_us = {median};
  return trial;
}

TEST(Ranking, CallsOverlappingIntervalsATie) {
  const std::vector<Ranked> ranking =
      rank({timed(0, 110, 1, 4), timed(1, 101, 2, 8), timed(2, 100, 1, 12)});
  ASSERT_EQ(ranking.size(), 3u);
  EXPECT_EQ(ranking[0].trial.id, 2);
  EXPECT_TRUE(ranking[1].ties_with_best);
  EXPECT_FALSE(ranking[2].ties_with_best);
  const std::string text =
      summary_text({timed(0, 110, 1, 4), timed(1, 101, 2, 8), timed(2, 100, 1, 12)}, {});
  EXPECT_NE(text.find("2 configs tie for the best: the 95% intervals of their medians overlap."),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("100.0 +-1.0"), std::string::npos) << text;
  EXPECT_NE(text.find("+10.00%"), std::string::npos) << text;
}

TEST(Ranking, OfSimulationsTimesWithinTheModelsNoiseTie) {
  const std::vector<Ranked> ranking =
      rank({timed(1, 100, 0, 8), timed(0, 100, 0, 4), timed(2, 100.2, 0, 12)});
  EXPECT_EQ(ranking[0].trial.id, 0);  // the smaller id, whatever the log's order
  EXPECT_TRUE(ranking[1].ties_with_best);
  EXPECT_FALSE(ranking[2].ties_with_best);
}

TEST(Summary, ListsFailuresByReason) {
  std::vector<Trial> trials = {timed(0, 100, 0, 4), timed(1, 0, 0, 8), timed(2, 0, 0, 12),
                               timed(3, 0, 0, 16)};
  for (std::size_t i = 1; i < 4; ++i) {
    trials[i].verdict = i < 3 ? Verdict::aborted : Verdict::illegal;
    trials[i].reason = i < 3 ? "hung at a gate" : "no SM left";
  }
  const std::string text = summary_text(trials, {});
  EXPECT_NE(text.find("2 x aborted: hung at a gate (first: trial 1, dispatch_comm_sms=8)"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("1 x illegal: no SM left (first: trial 3, defaults)"), std::string::npos)
      << text;
  trials.erase(trials.begin());
  EXPECT_NE(summary_text(trials, {}).find("No trial of the search ran."), std::string::npos);
}

TEST(Summary, ShowsTheLadderWithGains) {
  std::vector<Trial> trials = {timed(0, 100, 0, 4), timed(0, 200, 0, 4), timed(1, 250, 0, 4),
                               timed(2, 150, 0, 4)};
  trials[1].label = "serial";
  trials[2].label = "fused";
  trials[3].label = "+ pull order";
  for (std::size_t i = 1; i < 4; ++i) {
    trials[i].kind = TrialKind::rung;
  }
  const std::string text = summary_text(trials, {});
  EXPECT_NE(text.find("fused                    250.0       -50.0        +25.0%"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("+ pull order             150.0      +100.0        -25.0%"),
            std::string::npos)
      << text;
}

TEST(Timing, SaysHowManySlowSamplesAreSetApartAndHowManyCount) {
  std::vector<Trial> trials = {timed(0, 100, 1, 4), timed(1, 150, 1, 8)};
  trials[0].wall_us = {100, 150, 100, 100};
  trials[0].sm_clock_mhz = {1980, 1200, 1980, 1980};
  trials[1].wall_us = {150, 150, 100};
  trials[1].sm_clock_mhz = {1200, 1200, 1980};
  for (Trial& trial : trials) {
    trial.throttle_mhz = 1782;
  }
  std::string text = timing_text(trials, {});
  EXPECT_NE(text.find("SM clock: median 1980 MHz; 1 of 7 samples ran below 1782 MHz and are set "
                      "apart; 2 more did but count, as most of their trial's samples did.\n"),
            std::string::npos)
      << text;
  trials[0].throttle_mhz = 1311;
  text = timing_text(trials, {});
  EXPECT_NE(
      text.find(
          "1 of 7 samples ran below their trial's threshold, 1311 to 1782 MHz, and are set apart;"),
      std::string::npos)
      << text;
  trials[0].throttle_mhz = 1782;
  trials.pop_back();
  text = timing_text(trials, {});
  EXPECT_NE(text.find("1 of 4 samples ran below 1782 MHz and are set apart.\n"), std::string::npos)
      << text;
}

TEST(Timing, SaysWhereTheTimeOfRestsWent) {
  Outcome outcome;
  outcome.seconds = 2;
  outcome.engine_seconds = 1.5;
  const std::vector<Trial> trials = {timed(3, 100.5, 0.25, 8)};
  EXPECT_NE(
      timing_text(trials, outcome).find("the remainder set-up, output checks and warm-up) and"),
      std::string::npos);
  outcome.rest_ms = 10;
  EXPECT_NE(timing_text(trials, outcome)
                .find("output checks, warm-up and 10 ms of rest before each iteration) and"),
            std::string::npos);
}

TEST(Csv, QuotesWhatNeedsIt) {
  Trial trial = timed(3, 100.5, 0.25, 8);
  trial.label = "a, \"b\"";
  trial.steps_us = {{"gemm 1", 60}, {"launch gap", 0.5}};
  Trial failed = timed(4, 0, 0, 200);
  failed.verdict = Verdict::illegal;
  failed.reason = "two\nlines";
  const std::string csv = to_csv({trial, failed});
  const std::size_t rows = csv.find("\r\n");
  EXPECT_TRUE(
      csv.starts_with("id,label,verdict,median_us,half_ci_us,raw_median_us,samples,visits,"));
  EXPECT_NE(csv.substr(0, rows).find(",gemm 1 us,launch gap us,seconds,source,reason"),
            std::string::npos);
  EXPECT_NE(csv.find("\r\n3,\"a, \"\"b\"\"\",ok,100.5,0.25,0,1,"), std::string::npos) << csv;
  EXPECT_NE(csv.find(",60,0.5,"), std::string::npos) << csv;
  EXPECT_NE(csv.find("\"two\nlines\"\r\n"), std::string::npos) << csv;
}

}  // namespace
}  // namespace fusescope::sweep
