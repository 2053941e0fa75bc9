#pragma once
// What every attribution must satisfy, whatever the timeline: each view adds up to the nanosecond.

#include "timeline/timeline.hpp"

namespace fusescope::analysis {

// Fails the current test, naming `what`, unless the segments tile the wall and every sum of the critical
// path, the accounting, the gates and the wait table is exact.
void expect_exact(const timeline::Timeline& timeline, const char* what);

}  // namespace fusescope::analysis
