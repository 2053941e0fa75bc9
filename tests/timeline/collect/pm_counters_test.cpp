// PM samples as counters: on the timeline's clock, rates over the sample, nothing from outside the wall.

#include <gtest/gtest.h>

#include "timeline/collect/pm_counters.hpp"

namespace fusescope::timeline {
namespace {

Timeline wall(std::int64_t end_ns) {
  Timeline timeline;
  timeline.wiring.ranks = 1;
  timeline.end_ns = end_ns;
  return timeline;
}

// Every value 1000 in a sample of 100 ns, from `begin`.
PmSamples samples(std::vector<std::uint64_t> begins) {
  PmSamples result;
  for (const std::uint64_t begin : begins) {
    result.samples.push_back({begin, begin + 100, std::vector<double>(pm_metrics().size(), 1000)});
  }
  return result;
}

TEST(PmCounters, RatesOnTheTimelinesClock) {
  Timeline timeline = wall(1000);
  const ClockLine clock(0, 50, 0, 0);  // the device's clock shows 50 more
  add_pm_counters(samples({100, 10'250, 10'350, 20'000}), 0, clock, 10'000, timeline);
  ASSERT_EQ(timeline.counters.size(), pm_metrics().size());
  for (std::size_t metric = 0; metric < pm_metrics().size(); ++metric) {
    const Counter& counter = timeline.counters[metric];
    EXPECT_EQ(counter.time_ns, (std::vector<std::int64_t>{200, 300}));
    EXPECT_EQ(counter.value[0], pm_metrics()[metric].per_time ? 10 : 1000);
  }
  EXPECT_EQ(check(timeline), "");
}

TEST(PmCounters, WithoutSamplesInTheWallThereIsNoCounter) {
  Timeline timeline = wall(1000);
  add_pm_counters(samples({100'000}), 0, ClockLine(), 0, timeline);
  EXPECT_TRUE(timeline.counters.empty());
}

TEST(PmCounters, LinkBytesCountEdgesInPart) {
  const Timeline timeline = wall(150);
  const LinkBytes bytes = link_bytes(samples({0, 100, 200}), ClockLine(), 0, timeline);
  for (const double counted :
       {bytes.sent, bytes.received, bytes.written, bytes.served, bytes.written_here, bytes.read}) {
    EXPECT_DOUBLE_EQ(counted, 1500);
  }
}

}  // namespace
}  // namespace fusescope::timeline
