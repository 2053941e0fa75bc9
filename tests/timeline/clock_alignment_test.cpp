// Synthetic clocks with known offsets and drifts: the true offset always lies within the bound.

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "base/error.hpp"
#include "timeline/collect/clock_alignment.hpp"

namespace fusescope::timeline {
namespace {

constexpr double kEpoch = 1.7e18;  // what %globaltimer shows: nanoseconds since 1970

// true time -> what the device's timer shows
struct Clock {
  std::int64_t offset_ns = 0;
  double drift = 0;
  double phase_ns = 0;
  int step_ns = 32;

  // Exactly, before it is cut to a step: relative to the epoch, so that a double holds it.
  double exact(double true_ns) const {
    return true_ns * (1 + drift) + static_cast<double>(offset_ns) + phase_ns;
  }
  std::uint64_t read(double true_ns) const {
    const auto steps = static_cast<std::int64_t>(std::floor(exact(true_ns) / step_ns));
    return static_cast<std::uint64_t>(static_cast<std::int64_t>(kEpoch) / step_ns * step_ns +
                                      steps * step_ns);
  }
};

class Link {
 public:
  Link(double least_ns, double asymmetry, unsigned seed)
      : least_ns_(least_ns), asymmetry_(asymmetry), random_(seed) {}

  std::vector<ClockPing> exchange(const Clock& local, const Clock& remote, double& now,
                                  int pings = 200) {
    std::vector<ClockPing> result;
    for (int i = 0; i < pings; ++i) {
      ClockPing ping;
      ping.sent_ns = local.read(now);
      now += least_ns_ * asymmetry_ + jitter_(random_);
      ping.answered_ns = remote.read(now);
      now += least_ns_ * (1 - asymmetry_) + jitter_(random_);
      ping.received_ns = local.read(now);
      result.push_back(ping);
      now += 40;
    }
    return result;
  }

 private:
  double least_ns_;
  double asymmetry_;
  std::mt19937 random_;
  std::exponential_distribution<double> jitter_{1.0 / 100};
};

class Clocks : public testing::TestWithParam<unsigned> {};

// Two devices, all of a long run: whatever the ways took, the aligned clocks differ by less than the
// bound, reading included.
TEST_P(Clocks, EventsAlignWithinTheBound) {
  std::mt19937 random(GetParam());
  std::uniform_real_distribution<double> unit(0, 1);
  const Clock local{0, 30e-6 * (unit(random) - 0.5), 32 * unit(random), 32};
  const Clock remote{static_cast<std::int64_t>(2e5 * (unit(random) - 0.5)),
                     30e-6 * (unit(random) - 0.5), 32 * unit(random), 32};
  Link link(1300, 0.2 + 0.6 * unit(random), GetParam());
  double now = 0;
  ClockPings pair{0, 1, {}, {}};
  pair.start = link.exchange(local, remote, now);
  const double begin = now;
  now += 1e7 + 2e9 * unit(random);
  const double end = now;
  pair.end = link.exchange(local, remote, now);

  const ClockAlignment alignment = align_clocks(2, {&pair, 1}, 32);
  EXPECT_LT(alignment.bound_ns, 1000) << describe(alignment);
  for (int i = 0; i <= 1000; ++i) {
    const double at = begin + (end - begin) * i / 1000;
    const std::int64_t a = alignment.devices[0].to_reference(local.read(at));
    const std::int64_t b = alignment.devices[1].to_reference(remote.read(at));
    ASSERT_LE(std::abs(static_cast<double>(a - b)), alignment.bound_ns) << i;
  }
}
INSTANTIATE_TEST_SUITE_P(Seeds, Clocks, testing::Range(1U, 41U));

// With ways of very different length the middle of a round trip would be wrong; the interval is not.
TEST(ClockAlignment, TheBoundDoesNotNeedEqualWays) {
  const Clock local{0, 0, 0, 32};
  const Clock remote{-37'000, 0, 5, 32};
  for (const double asymmetry : {0.02, 0.98}) {
    Link link(2000, asymmetry, 7);
    double now = 0;
    ClockPings pair{0, 1, link.exchange(local, remote, now), {}};
    now += 1e8;
    pair.end = link.exchange(local, remote, now);
    const ClockAlignment alignment = align_clocks(2, {&pair, 1}, 32);
    const double error = alignment.devices[1].offset_ns(remote.read(5e7)) - (-37'000 + 5);
    EXPECT_LE(std::abs(error), alignment.bounds_ns[1]);
    EXPECT_GT(std::abs(error), 500) << "the midpoint is wrong";
  }
}

TEST(ClockAlignment, DriftIsFoundAndInterpolated) {
  const Clock local{0, 0, 0, 32};
  const Clock remote{-37'000, 2e-6, 0, 32};
  Link link(1300, 0.5, 3);
  double now = 0;
  ClockPings pair{0, 1, link.exchange(local, remote, now), {}};
  now += 3e9;  // 6 us of drift
  pair.end = link.exchange(local, remote, now);
  const ClockAlignment alignment = align_clocks(2, {&pair, 1}, 32);
  EXPECT_NEAR(alignment.devices[1].drift(), 2e-6, 0.5e-6);
  EXPECT_NE(describe(alignment).find("device 1 -36."), std::string::npos) << describe(alignment);
}

TEST(ClockAlignment, WithoutPingsAtTheEndTheBoundGrows) {
  const Clock local{0, 0, 0, 32};
  const Clock remote{500, 0, 0, 32};
  Link link(1300, 0.5, 3);
  double now = 0;
  const ClockPings pair{0, 1, link.exchange(local, remote, now), {}};
  const double short_run = align_clocks(2, {&pair, 1}, 32, 1e6).bound_ns;
  const double long_run = align_clocks(2, {&pair, 1}, 32, 1e8).bound_ns;
  EXPECT_NEAR(long_run - short_run, kMostDrift * (1e8 - 1e6), 1);
}

// Four devices of which only neighbours were measured, the second pair the other way round.
TEST(ClockAlignment, BoundsAddUpAlongTheTree) {
  const std::array<Clock, 4> clocks = {Clock{0, 0, 0, 32}, Clock{-37'000, 1e-6, 3, 32},
                                       Clock{90'000, -2e-6, 11, 32}, Clock{5, 3e-6, 30, 32}};
  Link link(1300, 0.4, 5);
  std::vector<ClockPings> pairs = {{0, 1, {}, {}}, {2, 1, {}, {}}, {2, 3, {}, {}}};
  double now = 0;
  const auto at = [&](int device) { return clocks[static_cast<std::size_t>(device)]; };
  for (ClockPings& pair : pairs) {
    pair.start = link.exchange(at(pair.local), at(pair.remote), now);
  }
  const double begin = now;
  now += 1e9;
  for (ClockPings& pair : pairs) {
    pair.end = link.exchange(at(pair.local), at(pair.remote), now);
  }
  const ClockAlignment alignment = align_clocks(4, pairs, 32);
  EXPECT_NEAR(alignment.bound_ns, alignment.bounds_ns[3] + 33, 1e-6) << "from one end to the other";
  EXPECT_LT(alignment.bounds_ns[1], alignment.bounds_ns[2]);
  EXPECT_LT(alignment.bounds_ns[2], alignment.bounds_ns[3]);
  for (const double time : {begin, begin + 3e8, begin + 1e9}) {
    for (int a = 0; a < 4; ++a) {
      for (int b = 0; b < a; ++b) {
        const auto line = [&](int device) {
          return alignment.devices[static_cast<std::size_t>(device)].to_reference(
              at(device).read(time));
        };
        ASSERT_LE(std::abs(static_cast<double>(line(a) - line(b))), alignment.bound_ns)
            << a << " " << b;
      }
    }
  }
}

TEST(ClockAlignment, OneDeviceNeedsNone) {
  const ClockAlignment alignment = align_clocks(1, {}, 32);
  EXPECT_EQ(alignment.bound_ns, 0);
  EXPECT_EQ(alignment.devices.at(0).to_reference(123), 123);
}

TEST(ClockAlignment, WhatCannotBeIsRefused) {
  const Clock local{0, 0, 0, 32};
  const Clock remote{500, 0, 0, 32};
  Link link(1300, 0.5, 3);
  double now = 0;
  ClockPings pair{0, 1, link.exchange(local, remote, now), {}};
  EXPECT_THROW(align_clocks(3, {&pair, 1}, 32), InputError) << "nothing leads to device 2";
  pair.remote = 7;
  EXPECT_THROW(align_clocks(2, {&pair, 1}, 32), InputError);
  pair.remote = 1;
  pair.start[100].answered_ns += 1'000'000;  // a clock that jumped
  EXPECT_THROW(align_clocks(2, {&pair, 1}, 32), CheckFailure);
  pair.start.clear();
  EXPECT_THROW(align_clocks(2, {&pair, 1}, 32), InputError);
}

}  // namespace
}  // namespace fusescope::timeline
