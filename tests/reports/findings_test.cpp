#include "reports/findings.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <tuple>

#include "reports/sections.hpp"
#include "synthetic.hpp"

namespace fusescope::reports {
namespace {

bool says(const std::vector<std::string>& sentences, const std::string& words) {
  return std::any_of(sentences.begin(), sentences.end(), [&](const std::string& sentence) {
    return sentence.find(words) != std::string::npos;
  });
}

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
  EXPECT_TRUE(says(findings.verdict, "the ladder's rung \"+ all hands\" takes"));
  EXPECT_TRUE(says(findings.verdict, "50.0% less time"));
  EXPECT_TRUE(says(findings.next, "Search around the rung \"+ all hands\" too"));
  input.trials.back().median_us = best.median_us;
  EXPECT_EQ(find(input).faster_rung, nullptr);
}

// The fifth and the third of the search are finalists; in their turns, on a slower machine, the fifth wins.
class FinalistsTest : public testing::Test {
 protected:
  FinalistsTest() {
    input_.provenance = timeline::Provenance::measured;
    const std::vector<const ReportTrial*> searched = find(input_).ranked;
    third_ = searched[2]->id;
    fifth_ = searched[4]->id;
    trial(third_).turns = {1310, 2, false};
    trial(fifth_).turns = {1300, 2, true};
  }

  ReportTrial& trial(int id) {
    return *std::find_if(input_.trials.begin(), input_.trials.end(), [id](const ReportTrial& one) {
      return one.id == id && one.label.empty() && !one.serial;
    });
  }

  ReportInput input_ = synthetic_input();
  int third_ = 0;
  int fifth_ = 0;
};

TEST_F(FinalistsTest, TheirTurnsDecideWhatIsBest) {
  const Findings findings = find(input_);
  ASSERT_EQ(findings.ranked.size(), 12U);
  EXPECT_EQ(findings.finalists, 2U);
  EXPECT_EQ(findings.best()->id, fifth_);
  EXPECT_EQ(findings.ranked[1]->id, third_);
  EXPECT_LT(findings.ranked[2]->wall_us(), findings.best()->wall_us());
  EXPECT_TRUE(says(findings.verdict, "the fastest of 2 finalists timed in turns, of 12 fused"));
  EXPECT_TRUE(says(findings.verdict, "takes 1,300.0 µs"));
  const Table table = top_table(input_, findings);
  EXPECT_EQ(table.rows[0][1].text, "#" + std::to_string(fifth_));
  EXPECT_EQ(table.rows[1][1].text, "#" + std::to_string(third_));
}

TEST_F(FinalistsTest, OthersAreHeldAgainstWhatTheSearchMeasured) {
  const Findings findings = find(input_);
  EXPECT_DOUBLE_EQ(findings.to_best(trial(third_)), 1310.0 / 1300);
  const ReportTrial& other = *findings.ranked[2];
  ASSERT_FALSE(other.turns);
  EXPECT_DOUBLE_EQ(findings.to_best(other), other.median_us / trial(fifth_).median_us);
}

TEST_F(FinalistsTest, TieByTheirRounds) {
  EXPECT_FALSE(find(input_).ties[1]);
  trial(third_).turns->ties = true;
  EXPECT_TRUE(find(input_).ties[1]);
}

TEST(Findings, TheLaddersRungOfTheBestConfigIsNoMissedOne) {
  ReportInput input = synthetic_input();
  ReportTrial rung = *find(input).best();
  ReportTrial serial = *find(input).serial;
  std::erase_if(input.trials, [](const ReportTrial& trial) { return trial.serial; });
  rung.id = 90;
  rung.label = "+ tuned split";
  rung.median_us *= 0.9;
  serial.id = 91;
  serial.label = "serial";
  serial.median_us *= 0.9;
  input.trials.push_back(rung);
  input.trials.push_back(serial);
  const Findings findings = find(input);
  EXPECT_EQ(findings.faster_rung, nullptr);
  ASSERT_NE(findings.best_rung, nullptr);
  // Against the serial layer, the ladder's walls: the two were timed beside each other.
  EXPECT_DOUBLE_EQ(findings.to_serial(), rung.median_us / serial.median_us);
  EXPECT_TRUE(says(findings.verdict, "µs in the ladder, and this config there 950.4 µs"));
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

TEST(Findings, AnAxisIsExtendedWhereItHasRoomAndNotBelowZero) {
  const ReportInput synthetic = synthetic_input();
  const auto next_with_smallest_as = [&](const std::string& smallest) {
    ReportInput input = synthetic;
    for (ReportTrial& trial : input.trials) {
      const auto knob = trial.knobs.find("dispatch_comm_sms");
      if (knob != trial.knobs.end() && knob->second == "4") {
        knob->second = smallest;
        trial.median_us /= 2;
      }
    }
    EXPECT_EQ(find(input).best()->knobs.at("dispatch_comm_sms"), smallest);
    return find(input).next;
  };
  EXPECT_TRUE(says(next_with_smallest_as("1"),
                   "dispatch_comm_sms=1 is the smallest value swept: extend the axis down."));
  EXPECT_FALSE(says(next_with_smallest_as("0"), "dispatch_comm_sms=0 is the smallest"));
}

// With a percentage in the place of a count: the best is the largest value swept, and 100 has nothing above it.
TEST(Findings, APercentageIsNotExtendedBeyondAHundred) {
  const ReportInput synthetic = synthetic_input();
  const auto next_with_largest_as = [&](const std::string& largest) {
    ReportInput input = synthetic;
    std::replace(input.axes.begin(), input.axes.end(), std::string("dispatch_comm_sms"),
                 std::string("dispatch_head"));
    for (ReportTrial& trial : input.trials) {
      if (auto knob = trial.knobs.extract("dispatch_comm_sms"); !knob.empty()) {
        const bool most = knob.mapped() == "16";
        trial.knobs["dispatch_head"] = most ? largest : knob.mapped();
        trial.median_us /= most ? 2 : 1;
      }
    }
    EXPECT_EQ(find(input).best()->knobs.at("dispatch_head"), largest);
    return find(input).next;
  };
  EXPECT_TRUE(says(next_with_largest_as("75"),
                   "dispatch_head=75 is the largest value swept: extend the axis up."));
  EXPECT_FALSE(says(next_with_largest_as("100"), "dispatch_head=100 is the"));
}

TEST(Findings, AHeadThatIsTooSmallIsNamed) {
  ReportInput input = synthetic_input();
  analysis::CriticalPath& path = input.chosen->attribution.path;
  path.exposed_by_step[static_cast<std::size_t>(analysis::Step::dispatch_bandwidth)] =
      2 * input.chosen->attribution.wall_ns;
  for (const auto& [sms, head, names_it] :
       {std::tuple{"0", "50", true}, {"0", "100", false}, {"16", "100", false}}) {
    for (ReportTrial& trial : input.trials) {
      trial.knobs["dispatch_comm_sms"] = sms;
      trial.knobs["dispatch_head"] = head;
    }
    EXPECT_EQ(says(find(input).next, "Against the dispatch bandwidth: a larger dispatch_head"),
              names_it)
        << sms << " " << head;
  }
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
