#pragma once
// One exchange between the clocks of two devices, as the device code writes it down. Plain data.

#include <cstdint>

namespace fusescope::timeline {

struct ClockPing {
  std::uint64_t sent_ns = 0;  // local clock, before the request left
  std::uint64_t answered_ns =
      0;  // remote clock, between the request's arrival and the answer's leaving
  std::uint64_t received_ns = 0;  // local clock, after the answer was there
};

}  // namespace fusescope::timeline
