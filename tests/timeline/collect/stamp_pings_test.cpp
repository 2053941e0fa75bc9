// Stamp kernels as pings between CUPTI's clock and a device's.

#include <gtest/gtest.h>

#include "timeline/collect/clock_alignment.hpp"
#include "timeline/collect/cupti_activity.hpp"

namespace fusescope::timeline {
namespace {

ActivitySlice slice(const std::string& name, int device, std::uint64_t begin, std::uint64_t end) {
  ActivitySlice slice;
  slice.name = name;
  slice.device = device;
  slice.begin_ns = begin;
  slice.end_ns = end;
  return slice;
}

TEST(StampPings, KernelsLieAroundTheirStamps) {
  Activity activity;
  activity.slices = {
      slice("(anonymous namespace)::clock_stamp_kernel(unsigned long*)", 0, 100, 2100),
      slice("gemm", 0, 200, 300), slice("x::clock_stamp_kernel(unsigned long*)", 1, 400, 500),
      slice("x::clock_stamp_kernel(unsigned long*)", 0, 3000, 5000)};
  ClockPings pings{0, 1, stamp_pings(activity, 0, {6'100, 9'000}), {}};
  ASSERT_EQ(pings.start.size(), 2U);
  EXPECT_EQ(pings.start[1].sent_ns, 3000U);
  EXPECT_EQ(pings.start[1].answered_ns, 9'000U);
  const ClockAlignment alignment = align_clocks(2, {&pings, 1}, 32);
  EXPECT_NEAR(alignment.devices[1].offset_ns(6'100), 5000, alignment.bounds_ns[1]);
}

TEST(StampPings, AMissingRecordMakesNone) {
  Activity activity;
  activity.slices = {slice("clock_stamp_kernel", 0, 100, 2100)};
  EXPECT_TRUE(stamp_pings(activity, 0, {1, 2}).empty());
}

}  // namespace
}  // namespace fusescope::timeline
