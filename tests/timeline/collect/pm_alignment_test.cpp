// Samples are put on the kernels' clock by the markers around them: whatever the distance, with markers that
// begin and end within samples, and not at all where a marker is missing or says something else.

#include "timeline/collect/pm_alignment.hpp"

#include <gtest/gtest.h>

#include <algorithm>

namespace fusescope::timeline {
namespace {

constexpr std::uint64_t kInterval = 5'000;
constexpr std::uint64_t kOrigin = 1'000'000'000;  // of the kernels' clock

struct Session {
  PmSamples samples;
  ClockSpan first;
  ClockSpan last;
};

// Samples of 3 ms whose times are `shift_ns` too early. SMs are busy during the markers, and for some time
// in between; `last_shift_ns`: what the times of the second half are too early by.
Session session(std::int64_t shift_ns, std::int64_t last_shift_ns) {
  Session made;
  made.first = {kOrigin + 101'300, kOrigin + 101'300 + kMarkerNs};
  made.last = {kOrigin + 2'502'100, kOrigin + 2'502'100 + kMarkerNs};
  const ClockSpan work{kOrigin + 900'000, kOrigin + 1'400'000};
  made.samples.device = 1;
  for (std::uint64_t begin = kOrigin; begin < kOrigin + 3'000'000; begin += kInterval) {
    const std::uint64_t end = begin + kInterval;
    double busy_ns = 0;
    for (const ClockSpan& span : {made.first, work, made.last}) {
      const std::uint64_t from = std::max(begin, span.begin_ns);
      const std::uint64_t to = std::min(end, span.end_ns);
      busy_ns += to > from ? static_cast<double>(to - from) : 0;
    }
    PmSample sample{begin, end, std::vector<double>(pm_metrics().size(), 0)};
    sample.values[pm_metric(kSmsActive)] = 100 * busy_ns / static_cast<double>(kInterval);
    const std::int64_t shift = begin < kOrigin + 1'500'000 ? shift_ns : last_shift_ns;
    sample.begin_ns -= static_cast<std::uint64_t>(shift);
    sample.end_ns -= static_cast<std::uint64_t>(shift);
    made.samples.samples.push_back(sample);
  }
  return made;
}

TEST(PmAlignment, SamplesAreMovedToWhereTheMarkersWere) {
  for (const std::int64_t shift : {187'000, 0, -23'456}) {
    Session made = session(shift, shift);
    EXPECT_EQ(align_samples(made.samples, made.first, made.last), "");
    EXPECT_NEAR(made.samples.shift_ns, static_cast<double>(shift), 100);
    EXPECT_NEAR(static_cast<double>(made.samples.samples.front().begin_ns - kOrigin + 1000), 1000,
                100);
    EXPECT_LT(made.samples.bound_ns, 1'200);
  }
}

TEST(PmAlignment, WhatTheMarkersDifferByIsPartOfTheBound) {
  Session made = session(187'000, 190'000);
  EXPECT_EQ(align_samples(made.samples, made.first, made.last), "");
  EXPECT_NEAR(made.samples.shift_ns, 188'500, 100);
  EXPECT_NEAR(made.samples.bound_ns, 2'500, 200);
}

TEST(PmAlignment, MarkersThatContradictEachOtherMoveNothing) {
  Session made = session(187'000, 230'000);
  const std::uint64_t before = made.samples.samples.front().begin_ns;
  const std::string why = align_samples(made.samples, made.first, made.last);
  EXPECT_NE(why.find("GPU 1"), std::string::npos) << why;
  EXPECT_NE(why.find("187.0 us"), std::string::npos) << why;
  EXPECT_EQ(made.samples.samples.front().begin_ns, before);
  EXPECT_EQ(made.samples.bound_ns, 0);
}

TEST(PmAlignment, AMarkerThatIsNotAmongTheSamplesIsSaid) {
  Session made = session(0, 0);
  made.samples.samples.resize(440);  // the session's end, the last marker with it
  EXPECT_NE(align_samples(made.samples, made.first, made.last), "");
  Session none = session(0, 0);
  for (PmSample& sample : none.samples.samples) {
    sample.values[pm_metric(kSmsActive)] = 3;
  }
  EXPECT_NE(align_samples(none.samples, none.first, none.last), "");
  PmSamples empty;
  EXPECT_NE(align_samples(empty, made.first, made.last), "");
}

}  // namespace
}  // namespace fusescope::timeline
