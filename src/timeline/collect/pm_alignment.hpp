#pragma once
// Times of PM samples on the timer that kernels read. A session of samples begins and ends with a marker: a
// kernel that keeps all SMs busy and writes down from when to when. What the samples show of it lies
// somewhere else on their own clock; the distance is how far they are moved. Over a session of some
// milliseconds the two clocks part by less than a microsecond: one distance does for all samples.
//
// A marker's place is its centre of gravity: samples that it fills in part weigh in by their part, so that
// the interval hardly shows. What it does not see: SMs count as active from a block's launch to its leaving,
// about a microsecond around what the block writes down.

#include <cstdint>
#include <string>

#include "timeline/collect/clock_pings.hpp"
#include "timeline/collect/pm_sampling.hpp"

namespace fusescope::timeline {

inline constexpr std::uint64_t kMarkerNs = 200'000;

// `first`, `last`: the markers on the device's %globaltimer; nothing else may have run on it before the first
// or after the last. Moves the samples, sets their shift and bound; "", or why it cannot be and nothing is
// changed: a marker is not there, or the two ask for distances that differ by more than an interval.
std::string align_samples(PmSamples& samples, const ClockSpan& first, const ClockSpan& last);

}  // namespace fusescope::timeline
