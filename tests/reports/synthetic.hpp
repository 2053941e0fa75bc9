#pragma once
// A small sweep with one iteration, consistent in itself, for tests of the renderers.

#include "reports/report.hpp"

namespace fusescope::reports {

// Ranks of 32 tokens, K = 2, 4 row blocks a rank; 3 compute and 1 communication block. All ranks pull tokens in
// the same order, and each row takes as long.
timeline::Timeline synthetic_timeline(int ranks = 2);

// 12 swept configs over three axes, one illegal and one timed out, the serial layer, a ladder of seven
// rungs, published figures, a profile, and the timeline above with its attribution.
ReportInput synthetic_input(int ranks = 2);

}  // namespace fusescope::reports
