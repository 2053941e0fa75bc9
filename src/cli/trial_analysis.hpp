#pragma once
// What a sweep asks the analysis about a trial's timeline.

#include "sweep/trial.hpp"
#include "timeline/timeline.hpp"

namespace fusescope::cli {

// Fills steps_us, timeline_wall_us and exposed_us. Throws CheckFailure when the timeline breaks the
// event contract or nothing is attributed.
void analyse_trial(const timeline::Timeline& timeline, sweep::Trial& trial);

}  // namespace fusescope::cli
