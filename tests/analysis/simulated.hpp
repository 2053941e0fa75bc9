#pragma once
// Timelines from the simulator, for tests.

#include "analysis/rungs.hpp"
#include "layer/config.hpp"
#include "layer/problem.hpp"
#include "timeline/timeline.hpp"

namespace fusescope::analysis {

// One recorded iteration on the profile of the seed's machine.
timeline::Timeline simulated(const Problem& problem, const Config& config);

// The same on two H200s' profile, whose device runs every tile.
timeline::Timeline simulated_on_h200(const Problem& problem, const Config& config);

// The same with an L2 that holds the whole layer: a tile takes as long whatever ran before it.
timeline::Timeline simulated_in_cache(const Problem& problem, const Config& config);
timeline::Timeline simulated_on_h200_in_cache(const Problem& problem, const Config& config);

// The walls of its rungs.
Rungs simulated_rungs(const Problem& problem, const Config& config);
Rungs simulated_rungs_on_h200(const Problem& problem, const Config& config);

// The seed's layer on four ranks.
Problem seed_problem(const std::string& routing);

// A layer about a sixteenth of that, with a row of half the length.
Problem small_problem(const std::string& routing);

}  // namespace fusescope::analysis
