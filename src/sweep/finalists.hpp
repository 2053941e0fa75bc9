#pragma once
// Who is timed again in turns at the end of a search, and in which order.

#include <vector>

#include "sweep/runner.hpp"

namespace fusescope::sweep {

// The fastest `rules.configs` of the search, as rounds in which each is measured once; every round
// starts with another one. Nothing where fewer than two ran, or where the samples have no noise to
// beat. The base config is a candidate like those that the search proposed, by what was measured of it until the search
// ended, as base and as trial; `base_competes` false: it is none by that (a constraint excludes it).
std::vector<Given> finalist_rounds(const std::vector<Trial>& trials, const Finalists& rules,
                                   bool base_competes = true);

// The same for given configs.
std::vector<Given> rounds_of_turns(const std::vector<Config>& configs, int rounds);

}  // namespace fusescope::sweep
