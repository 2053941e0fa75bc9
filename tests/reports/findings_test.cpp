#include "reports/findings.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "reports/sections.hpp"
#include "synthetic.hpp"

namespace fusescope::reports {
namespace {

TEST(Findings, RanksFusedConfigsAndFindsTheBaseline) {
  const ReportInput input = synthetic_input();
  const Findings findings = find(input);
  ASSERT_EQ(findings.ranked.size(), 12U);
  EXPECT_EQ(findings.best()->config, "dispatch_comm_sms=16 tokens_per_block=12 all_hands=true");
  for (std::size_t i = 1; i < findings.ranked.size(); ++i) {
    EXPECT_LE(findings.ranked[i - 1]->median_us, findings.ranked[i]->median_us);
  }
  ASSERT_NE(findings.serial, nullptr);
  EXPECT_EQ(findings.failed.size(), 2U);
  EXPECT_EQ(findings.tied, 1U);
}

TEST(Findings, ARungThatRepeatsASweptConfigCountsOnce) {
  ReportInput input = synthetic_input();
  ReportTrial rung = *find(input).best();
  rung.id = 99;
  rung.label = "+ tuned split";
  input.trials.push_back(rung);
  const Findings findings = find(input);
  EXPECT_EQ(findings.ranked.size(), 12U);
  EXPECT_TRUE(findings.best()->label.empty());
}

TEST(Findings, ARungFasterThanTheSearchIsSaidAndNotTakenForTheBest) {
  ReportInput input = synthetic_input();
  const ReportTrial best = *find(input).best();
  ReportTrial rung = best;
  rung.id = 99;
  rung.label = "+ all hands";
  rung.config = "defaults";
  rung.median_us = best.median_us / 2;
  input.trials.push_back(rung);
  const Findings findings = find(input);
  EXPECT_EQ(findings.ranked.size(), 12U);
  EXPECT_EQ(findings.best()->config, best.config);
  ASSERT_NE(findings.faster_rung, nullptr);
  EXPECT_EQ(findings.faster_rung->id, 99);
  const auto says = [](const std::vector<std::string>& sentences, const std::string& words) {
    return std::any_of(sentences.begin(), sentences.end(), [&](const std::string& sentence) {
      return sentence.find(words) != std::string::npos;
    });
  };
  EXPECT_TRUE(says(findings.verdict, "the ladder's rung \"+ all hands\" takes"));
  EXPECT_TRUE(says(findings.verdict, "50.0% less time"));
  EXPECT_TRUE(says(findings.next, "Search around the rung \"+ all hands\" too"));
  input.trials.back().median_us = best.median_us;
  EXPECT_EQ(find(input).faster_rung, nullptr);
}

TEST(Findings, OneRunIsNotASearch) {
  ReportInput input = synthetic_input();
  ReportTrial only = *find(input).best();
  input.axes.clear();
  input.trials = {only};
  EXPECT_EQ(find(input).headline, "The run takes 1,056.0 µs (simulated)");
  input.trials.front().serial = true;
  EXPECT_EQ(find(input).headline, "The serial layer takes 1,056.0 µs (simulated)");
  EXPECT_EQ(find(input).verdict.front().find("fastest"), std::string::npos);
}

TEST(Findings, StudiesAndInjectedDelaysAreNotRanked) {
  ReportInput input = synthetic_input();
  for (const char* knob : {"study", "inject"}) {
    ReportTrial fast = *find(input).best();
    fast.config += knob;
    fast.median_us = 1;
    fast.knobs[knob] = "compute_all";
    input.trials.push_back(fast);
  }
  EXPECT_GT(find(input).best()->median_us, 1);
}

TEST(Findings, SimulatedTiesAreWithinTheModelsResolution) {
  ReportInput input = synthetic_input();
  ReportTrial near = *find(input).best();
  near.config += " watermark_chunks=2";
  near.median_us *= 1.0005;
  input.trials.push_back(near);
  const Findings findings = find(input);
  EXPECT_EQ(findings.tied, 2U);
  EXPECT_EQ(top_table(input, findings).rows[1].front().text, "2 (tie)");
}

TEST(Findings, MeasuredTiesAreOverlappingIntervals) {
  ReportInput input = synthetic_input();
  input.provenance = timeline::Provenance::measured;
  for (ReportTrial& trial : input.trials) {
    trial.half_ci_us = 5;
  }
  const Findings findings = find(input);
  EXPECT_EQ(findings.word, "measured");
  EXPECT_EQ(findings.tied, 2U);  // 1056 and 1064, each +- 5
}

TEST(Findings, TheAxisThatMovesTheWallMostComesFirst) {
  const Findings findings = find(synthetic_input());
  ASSERT_EQ(findings.axes.size(), 3U);
  EXPECT_EQ(findings.axes[0].axis, "dispatch_comm_sms");
  EXPECT_EQ(findings.axes[0].values, (std::vector<std::string>{"4", "8", "16"}));
  EXPECT_EQ(findings.axes[1].axis, "all_hands");
  double sum = 0;
  for (const AxisInfluence& axis : findings.axes) {
    sum += axis.explained;
  }
  EXPECT_NEAR(sum, 1, 1e-9);  // the synthetic walls are additive, so the main effects explain all
}

TEST(Findings, HeatmapHasTheSmallestWallOverTheOtherKnobs) {
  const ReportInput input = synthetic_input();
  const auto map = heatmap(input, find(input));
  ASSERT_TRUE(map);
  EXPECT_EQ(map->x, "dispatch_comm_sms");
  EXPECT_EQ(map->y, "all_hands");
  // dispatch_comm_sms=16, all_hands=true: of 1064 (8 tokens) and 1056 (12 tokens).
  EXPECT_DOUBLE_EQ(*map->wall_us[2], 1056);
}

TEST(Findings, WordsFollowTheNumbers) {
  ReportInput input = synthetic_input();
  EXPECT_EQ(find(input).headline,
            "The best config takes 24.6% less time than the serial layer (simulated)");
  for (ReportTrial& trial : input.trials) {
    if (trial.serial) {
      trial.median_us = 1000;
    }
  }
  EXPECT_EQ(find(input).headline,
            "The best config takes 5.6% more time than the serial layer (simulated)");
}

TEST(Findings, NothingRunIsSaidAndNotAnError) {
  ReportInput input;
  input.name = "empty";
  EXPECT_EQ(find(input).headline, "No config was run");
  EXPECT_NE(render_html(input).find("No config was run"), std::string::npos);
  EXPECT_NE(render_markdown(input, {}).find("No config was run"), std::string::npos);
}

TEST(Findings, EverythingFailedIsSaidAndListed) {
  ReportInput input = synthetic_input();
  for (ReportTrial& trial : input.trials) {
    trial.verdict = "crashed";
    trial.reason = "out of memory";
  }
  input.ladder = {};
  input.chosen.reset();
  EXPECT_EQ(find(input).headline, "No fused config ran to its end");
  EXPECT_NE(render_html(input).find("out of memory"), std::string::npos);
}

TEST(Findings, ALinkThatHoldsOthersUpIsPartOfTheVerdict) {
  ReportInput input = synthetic_input(3);
  const auto said = [&] {
    const std::vector<std::string> verdict = find(input).verdict;
    return std::find(verdict.begin(), verdict.end(), "The egress of rank 0: 7 µs.") !=
           verdict.end();
  };
  input.chosen->attribution.pulls.statement = "The egress of rank 0: 7 us";
  EXPECT_FALSE(said());
  input.chosen->attribution.pulls.bottleneck = 0;
  EXPECT_TRUE(said());
}

}  // namespace
}  // namespace fusescope::reports
