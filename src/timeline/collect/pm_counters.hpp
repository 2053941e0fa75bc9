#pragma once
// PM samples as counter rows of a timeline.

#include "timeline/collect/clock_alignment.hpp"
#include "timeline/collect/pm_sampling.hpp"
#include "timeline/timeline.hpp"

namespace fusescope::timeline {

// Appends one counter per metric for `rank`, from the samples that overlap the timeline's wall. `clock`:
// of the samples' device; `origin_ns`: DecodeReport::origin_ns. Ranks that share a device share its
// counters: add them to one of them.
void add_pm_counters(const PmSamples& samples, int rank, const ClockLine& clock,
                     std::int64_t origin_ns, Timeline& timeline);

// Bytes that a device moved over its links within the wall, from the same samples: those that overlap the
// wall's edges count in part.
struct LinkBytes {
  double sent = 0;  // all that went over the links: payload, headers, requests, acknowledgements
  double received = 0;
  // Payload: what this device wrote elsewhere, what others read from it, what they wrote here, what it
  // read from them.
  double written = 0;
  double served = 0;
  double written_here = 0;
  double read = 0;
};
LinkBytes link_bytes(const PmSamples& samples, const ClockLine& clock, std::int64_t origin_ns,
                     const Timeline& timeline);
// The same within a stretch of the device's own clock.
LinkBytes link_bytes(const PmSamples& samples, const ClockSpan& span);

}  // namespace fusescope::timeline
