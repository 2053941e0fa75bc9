#pragma once
// The parts of check(), in the order in which they run: each returns the first violation in words,
// or "". A part relies on the parts before it.

#include <string>

#include "timeline/dependencies.hpp"
#include "timeline/timeline.hpp"

namespace fusescope::timeline {

// Every index that others follow without looking: sizes of the wiring, ranks of tracks, tracks of
// events, order of events. What passes is safe to give to any reader.
std::string check_structure(const Timeline& timeline);

// Arguments, stages, the wall.
std::string check_events(const Timeline& timeline);

// Slices nest or do not overlap; phases are in order; blocks run inside their kernel's phase.
std::string check_tracks(const Dependencies& dependencies);

// No effect before its cause.
std::string check_causality(const Dependencies& dependencies);

// How much earlier than its cause an effect may look: the bound of the clock alignment, and for
// measurements what passes between raising a counter and writing down that it was raised.
std::int64_t tolerance_ns(const Timeline& timeline);

// "rank 0 dispatch_gemm compute block 5 at 1234 ns: gate_wait".
std::string where(const Timeline& timeline, const Event& event);

}  // namespace fusescope::timeline
