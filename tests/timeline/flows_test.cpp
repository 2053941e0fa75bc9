// The arrows of viewers: only where somebody waited, along the chain that kept them waiting.

#include "timeline/flows.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tiny_layer.hpp"

namespace fusescope::timeline {
namespace {

std::vector<Flow> named(const Dependencies& dependencies, std::string_view name) {
  std::vector<Flow> flows;
  for (const Flow& flow : find_flows(dependencies)) {
    if (flow.name == name) {
      flows.push_back(flow);
    }
  }
  return flows;
}

std::vector<Kind> kinds(const Dependencies& dependencies, const Flow& flow) {
  std::vector<Kind> list;
  for (const FlowStep& step : flow.steps) {
    list.push_back(dependencies.event(step.event).kind);
  }
  return list;
}

TEST(Flows, AGateThatWaitedPointsBackToItsLastToken) {
  const Timeline timeline = tiny_layer();
  const Dependencies dependencies(timeline);
  const std::vector<Flow> flows = named(dependencies, "opens gate");
  // Each of two compute blocks of two ranks waits for its first tile only: the rest opens
  // meanwhile.
  ASSERT_EQ(flows.size(), 4u);
  for (const Flow& flow : flows) {
    EXPECT_EQ(kinds(dependencies, flow),
              (std::vector{Kind::pull, Kind::arrive, Kind::gate_wait, Kind::mainloop}));
    EXPECT_EQ(dependencies.event(flow.steps[0].event).token, 7);
    EXPECT_TRUE(flow.steps[2].at_end);
  }
}

TEST(Flows, AJobThatWaitedPointsBackToItsLastRowBlock) {
  const Timeline timeline = tiny_layer();
  const Dependencies dependencies(timeline);
  const std::vector<Flow> flows = named(dependencies, "makes job ready");
  ASSERT_FALSE(flows.empty());
  for (const Flow& flow : flows) {
    EXPECT_EQ(kinds(dependencies, flow),
              (std::vector{Kind::epilogue, Kind::ready_wait, Kind::push}));
    const Event& wait = dependencies.event(flow.steps[1].event);
    EXPECT_EQ(dependencies.event(flow.steps[0].event).row_block, wait.row_block);
    EXPECT_EQ(dependencies.event(flow.steps[2].event).token, wait.token);
  }
}

TEST(Flows, AWatermarkThatWasWaitedForPointsToTheReduction) {
  const Timeline timeline = tiny_layer();
  const Dependencies dependencies(timeline);
  const std::vector<Flow> flows = named(dependencies, "raises watermark");
  // Only rank 0 waits, for the later rank 1.
  ASSERT_EQ(flows.size(), 1u);
  EXPECT_EQ(kinds(dependencies, flows[0]),
            (std::vector{Kind::push, Kind::watermark, Kind::reduce_wait, Kind::reduce}));
  EXPECT_EQ(dependencies.rank_of(flows[0].steps[0].event), 1);
  EXPECT_EQ(dependencies.rank_of(flows[0].steps[3].event), 0);
  EXPECT_EQ(dependencies.event(flows[0].steps[0].event).token, 3);
}

TEST(Flows, StepsNeverGoBackInTime) {
  Timeline timeline = tiny_layer();
  // Clocks that disagree: an arrive that seems to begin after the gate it opened.
  for (Event& event : timeline.events) {
    if (event.kind == Kind::arrive && event.token == 7) {
      event.begin_ns = event.end_ns = event.end_ns + 1;
    }
  }
  sort_events(timeline);
  const Dependencies dependencies(timeline);
  for (const Flow& flow : find_flows(dependencies)) {
    ASSERT_GE(flow.steps.size(), 2u);
    std::int64_t last = INT64_MIN;
    for (const FlowStep& step : flow.steps) {
      const Event& event = dependencies.event(step.event);
      const std::int64_t time = step.at_end ? event.end_ns : event.begin_ns;
      EXPECT_GE(time, last) << flow.name;
      last = time;
    }
  }
  for (const Flow& flow : named(dependencies, "opens gate")) {
    EXPECT_EQ(kinds(dependencies, flow),
              (std::vector{Kind::pull, Kind::gate_wait, Kind::mainloop}));
  }
}

}  // namespace
}  // namespace fusescope::timeline
