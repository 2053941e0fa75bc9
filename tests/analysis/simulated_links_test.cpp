// Four simulated ranks: the order in which they take tokens decides which links are loaded when, and the
// attribution names the one that they all wait for.

#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "analysis/advice.hpp"
#include "analysis/summary.hpp"
#include "simulated.hpp"

namespace fusescope::analysis {
namespace {

struct Explained {
  Config config;
  timeline::Timeline timeline;
  Attribution attribution;
};

Explained explain(const Config& config) {
  Explained run{config, simulated(seed_problem("uniform"), config), {}};
  run.attribution = attribute(run.timeline);
  return run;
}

// What is suggested for a knob, or null.
const Suggestion* suggested(const std::vector<Suggestion>& all, const std::string& knob) {
  const auto found = std::find_if(all.begin(), all.end(),
                                  [&](const Suggestion& each) { return each.knob == knob; });
  return found == all.end() ? nullptr : &*found;
}

TEST(SimulatedLinks, PullsByTokenAllGoToRankZeroFirst) {
  Config config;
  config.pull_order = PullOrder::by_token;
  const Explained run = explain(config);
  const LinkLoad& pulls = run.attribution.pulls;
  EXPECT_EQ(pulls.bottleneck, 0) << pulls.statement;
  EXPECT_NE(pulls.statement.find("The egress of rank 0 is a bottleneck"), std::string::npos);
  // In the first part of the span nearly all rows come from rank 0.
  for (std::size_t slice = 0; slice < kLoadSlices / 8; ++slice) {
    for (std::size_t rank = 1; rank < pulls.ranks.size(); ++rank) {
      EXPECT_GT(pulls.ranks[0].load[slice], 2 * pulls.ranks[rank].load[slice]) << slice;
    }
  }
  const std::vector<Suggestion> all = candidates(run.timeline, run.attribution, config);
  const Suggestion* pull_order = suggested(all, "pull_order");
  ASSERT_NE(pull_order, nullptr);
  EXPECT_EQ(pull_order->to, "by_slot");
  EXPECT_EQ(pull_order->evidence.find("the egress of rank 0 is a bottleneck"), 0U)
      << pull_order->evidence;
  // Rows then come in one order whatever their slots are.
  const Suggestion* slot_order = suggested(all, "slot_order");
  ASSERT_NE(slot_order, nullptr);
  EXPECT_EQ(slot_order->evidence.find("bottleneck"), std::string::npos) << slot_order->evidence;
}

TEST(SimulatedLinks, InterleavedSlotsLoadAllLinksAtOnce) {
  Config config;
  config.slot_order = SlotOrder::interleave_sources;
  const Explained run = explain(config);
  const LinkLoad& pulls = run.attribution.pulls;
  EXPECT_EQ(pulls.bottleneck, -1) << pulls.statement;
  EXPECT_NE(pulls.statement.find("Rows come from all ranks at once"), std::string::npos)
      << pulls.statement;
  const Problem problem = seed_problem("uniform");
  for (const LinkEnd& end : pulls.ranks) {
    EXPECT_EQ(end.rows, std::int64_t{problem.shape.ranks - 1} * problem.shape.tokens_per_rank);
    EXPECT_LT(4 * end.convoy_row_ns, end.row_ns);
  }
}

TEST(SimulatedLinks, JobsByTokenAllPushToRankZeroFirst) {
  Config config;
  config.job_order = JobOrder::by_token;
  const Explained run = explain(config);
  EXPECT_EQ(run.attribution.pushes.bottleneck, 0) << run.attribution.pushes.statement;
  const std::vector<Suggestion> all = candidates(run.timeline, run.attribution, config);
  const Suggestion* job_order = suggested(all, "job_order");
  ASSERT_NE(job_order, nullptr);
  EXPECT_EQ(job_order->evidence.find("the ingress of rank 0 is a bottleneck"), 0U)
      << job_order->evidence;
}

TEST(SimulatedLinks, JsonHasThemByRank) {
  Config config;
  config.pull_order = PullOrder::by_token;
  const Explained run = explain(config);
  const auto json = nlohmann::json::parse(to_json(run.attribution, run.timeline));
  const auto& pulls = json["links"]["pulls_by_source_rank"];
  EXPECT_EQ(pulls["bottleneck"], 0);
  EXPECT_EQ(pulls["ranks"].size(), 4U);
  EXPECT_EQ(pulls["ranks"][0]["rows_on_the_way"].size(), static_cast<std::size_t>(kLoadSlices));
  config.form = LayerForm::serial;
  const Explained serial = explain(config);
  EXPECT_TRUE(nlohmann::json::parse(
                  to_json(serial.attribution, serial.timeline))["links"]["pulls_by_source_rank"]
                  .is_null());
}

}  // namespace
}  // namespace fusescope::analysis
