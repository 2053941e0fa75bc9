#pragma once
// A small sweep with one iteration of two ranks, consistent in itself, for tests of the renderers.

#include "reports/report.hpp"

namespace fusescope::reports {

// 2 ranks of 32 tokens, K = 2, 4 row blocks a rank; 3 compute and 1 communication block.
timeline::Timeline synthetic_timeline();

// 12 swept configs over three axes, one illegal and one timed out, the serial layer, a ladder of seven
// rungs, published figures, a profile, and the timeline above with its attribution.
ReportInput synthetic_input();

}  // namespace fusescope::reports
