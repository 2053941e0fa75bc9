#pragma once
// What the device code writes down of the devices' clocks. Plain data.

#include <cstdint>

namespace fusescope::timeline {

// One exchange between the clocks of two devices.
struct ClockPing {
  std::uint64_t sent_ns = 0;  // local clock, before the request left
  std::uint64_t answered_ns =
      0;  // remote clock, between the request's arrival and the answer's leaving
  std::uint64_t received_ns = 0;  // local clock, after the answer was there
};

// A stretch of one device's clock.
struct ClockSpan {
  std::uint64_t begin_ns = 0;
  std::uint64_t end_ns = 0;
};

}  // namespace fusescope::timeline
