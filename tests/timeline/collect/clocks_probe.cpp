// Clocks of real GPUs: the step, the alignment of every pair, and whether it holds between the batches.

#include <chrono>
#include <cmath>
#include <cstdio>
#include <thread>

#include "gpus.hpp"
#include "kernels/clock_ping.hpp"
#include "timeline/collect/clock_alignment.hpp"

namespace fusescope::timeline {
namespace {

TEST(ClocksProbe, TheTimerSteps) {
  FUSESCOPE_NEED_GPUS(1);
  for (int device = 0; device < gpus(); ++device) {
    const std::uint64_t step = kernels::measure_timer_step(device);
    std::printf("device %d: %%globaltimer steps by %llu ns\n", device,
                static_cast<unsigned long long>(step));
    EXPECT_GT(step, 0U);
    EXPECT_LT(step, 2'000'000U);
  }
}

// Three batches: the middle one must lie where the outer two say.
TEST(ClocksProbe, TheMiddleOfARunLiesWithinTheBound) {
  FUSESCOPE_NEED_GPUS(2);
  double step = 0;
  for (int device = 0; device < gpus(); ++device) {
    step = std::max(step, static_cast<double>(kernels::measure_timer_step(device)));
  }
  for (int other = 1; other < gpus(); ++other) {
    enable_peer_access(0, other);
    ClockPings pair{0, other, kernels::ping_clocks(0, other), {}};
    std::this_thread::sleep_for(std::chrono::milliseconds(500));
    const ClockPings middle{0, other, kernels::ping_clocks(0, other), {}};
    std::this_thread::sleep_for(std::chrono::milliseconds(500));
    pair.end = kernels::ping_clocks(0, other);

    // Numbered as 0 and 1 here: one pair at a time.
    ClockPings outer = pair;
    ClockPings inner = middle;
    outer.remote = inner.remote = 1;
    const ClockAlignment whole = align_clocks(2, {&outer, 1}, step);
    const ClockAlignment once = align_clocks(2, {&inner, 1}, step);
    std::printf("device %d: %s\n", other, describe(whole).c_str());
    EXPECT_LE(whole.bound_ns, 1000) << "at most a microsecond";
    const std::uint64_t at = middle.start.front().answered_ns;
    const double between = whole.devices[1].offset_ns(at) - once.devices[1].offset_ns(at);
    std::printf("  in the middle off by %.0f ns, bound %.0f ns\n", between,
                whole.bounds_ns[1] + once.bounds_ns[1]);
    EXPECT_LE(std::abs(between), whole.bounds_ns[1] + once.bounds_ns[1]);
  }
}

}  // namespace
}  // namespace fusescope::timeline
