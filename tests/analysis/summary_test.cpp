#include "analysis/summary.hpp"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include <algorithm>

#include "analysis/findings.hpp"
#include "hand_made.hpp"
#include "tests/timeline/tiny_layer.hpp"

namespace fusescope::analysis {
namespace {

using nlohmann::json;
using timeline::Timeline;

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST(Summary, FindingsPartitionTheWallAndAreRankedByExposure) {
  const Timeline timeline = timeline::tiny_layer();
  const Attribution attribution = attribute(timeline);
  EXPECT_EQ(attribution.refusal, "");
  std::int64_t ns = 0;
  std::int64_t exposed = 0;
  for (std::size_t i = 0; i < attribution.findings.size(); ++i) {
    ns += attribution.findings[i].ns;
    exposed += attribution.findings[i].exposed_ns;
    EXPECT_TRUE(i == 0 ||
                attribution.findings[i].exposed_ns <= attribution.findings[i - 1].exposed_ns);
  }
  EXPECT_EQ(ns, timeline.wall_ns());
  EXPECT_EQ(exposed, attribution.exposed_ns);
  EXPECT_EQ(exposed, attribution.path.exposed_communication_ns());

  double us = 0;
  for (const auto& [step, time] : steps_us(attribution.path)) {
    us += time;
  }
  EXPECT_NEAR(us * 1000, static_cast<double>(timeline.wall_ns()), 1e-6);
}

TEST(Summary, HeadlineSaysWhereTheNumbersComeFrom) {
  Timeline timeline = timeline::tiny_layer();
  EXPECT_TRUE(contains(attribute(timeline).headline, "simulated wall of 1.3 us"));
  timeline.meta.provenance = timeline::Provenance::measured;
  EXPECT_TRUE(contains(attribute(timeline).headline, "measured wall of 1.3 us"));
}

TEST(Summary, EveryExposedStepHasAReason) {
  for (const Finding& finding : attribute(timeline::tiny_layer()).findings) {
    if (finding.exposed_ns > 0) {
      EXPECT_FALSE(finding.reason.empty()) << name(finding.step);
    }
  }
}

// Kernel 2 begins 10 ns behind kernel 1, and its only tile then still waits for activations: two gaps in a row.
TEST(Summary, AGapIsBeforeWhatIsNoGap) {
  HandMade made(1);
  made.phase(0, timeline::Kind::dispatch_gemm, 0, 100);
  made.phase(0, timeline::Kind::gemm_combine_push, 110, 200);
  const auto first = made.track(0, timeline::Stage::dispatch_gemm, timeline::Role::compute, 0);
  made.event(first, timeline::Kind::mainloop, 0, 100, {.row_block = 0, .index = 0});
  const auto second = made.track(0, timeline::Stage::gemm_combine_push, timeline::Role::compute, 0);
  made.event(second, timeline::Kind::activation_wait, 110, 113, {.row_block = 0, .index = 0});
  made.event(second, timeline::Kind::mainloop, 113, 200, {.row_block = 0, .index = 0});
  const Attribution attribution = attribute(made.build());
  const auto gap =
      std::find_if(attribution.findings.begin(), attribution.findings.end(),
                   [](const Finding& finding) { return finding.step == Step::launch_gap; });
  ASSERT_NE(gap, attribution.findings.end());
  EXPECT_EQ(gap->ns, 13);
  EXPECT_TRUE(contains(gap->reason, " before GEMM 2 on rank 0")) << gap->reason;
}

TEST(Summary, NothingIsAttributedOnAnEmptyTimeline) {
  const Attribution attribution = attribute(Timeline{});
  EXPECT_TRUE(contains(attribution.refusal, "no events"));
  EXPECT_TRUE(attribution.findings.empty());
  EXPECT_TRUE(attribution.headline.empty());
  const json parsed = json::parse(to_json(attribution, Timeline{}));
  EXPECT_TRUE(parsed.contains("refused"));
  EXPECT_FALSE(parsed.contains("headline"));
}

TEST(Summary, NothingIsAttributedOnAClippedTimeline) {
  Timeline timeline = timeline::tiny_layer();
  timeline.meta.dropped = 7;
  const Attribution attribution = attribute(timeline);
  EXPECT_TRUE(contains(attribution.refusal, "7 records"));
  EXPECT_TRUE(attribution.path.segments.empty());
}

TEST(Summary, WhatWeakensTheResultIsSaid) {
  Timeline timeline = timeline::tiny_layer();
  EXPECT_TRUE(attribute(timeline).caveats.empty());
  timeline.meta.clock_bound_ns = 600;
  std::erase_if(timeline.events,
                [](const timeline::Event& event) { return event.kind == timeline::Kind::arrive; });
  const Attribution attribution = attribute(timeline);
  ASSERT_EQ(attribution.caveats.size(), 3U);
  EXPECT_TRUE(contains(attribution.caveats[0], "600 ns"));
  EXPECT_TRUE(contains(attribution.caveats[1], "no cause on record"));
  EXPECT_TRUE(contains(attribution.caveats[2], "no arrival on record"));
}

TEST(Summary, JsonCarriesTheSameNumbers) {
  const Timeline timeline = timeline::tiny_layer();
  const Attribution attribution = attribute(timeline);
  const json parsed = json::parse(to_json(attribution, timeline, 2));
  EXPECT_EQ(parsed["wall_ns"], timeline.wall_ns());
  EXPECT_EQ(parsed["provenance"], "simulated");
  std::int64_t ns = 0;
  for (const json& step : parsed["critical_path"]["steps"]) {
    ns += step["ns"].get<std::int64_t>();
  }
  EXPECT_EQ(ns, timeline.wall_ns());
  EXPECT_EQ(parsed["accounting"]["gates"].size(), 2U);
  EXPECT_GT(parsed["accounting"]["gate_count"], 2);
}

TEST(Words, TimesAreRoundedToTenthsWithThousandsApart) {
  EXPECT_EQ(spoken_us(0), "0.0 us");
  EXPECT_EQ(spoken_us(1'234'567'890), "1,234,567.9 us");
  EXPECT_EQ(spoken_us(999'960), "1,000.0 us");
  EXPECT_EQ(spoken_us(-1'500), "-1.5 us");
}

}  // namespace
}  // namespace fusescope::analysis
