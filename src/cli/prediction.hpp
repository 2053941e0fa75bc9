#pragma once
// The simulator as a guide: the walls that it expects of configs.

#include "layer/problem.hpp"
#include "sweep/strategy.hpp"

namespace fusescope::cli {

inline constexpr const char* kGuideProfile = "h200-nvlink";  // where a sweep names none

// Simulates each config once, on all cores, and says on stderr how far it is. `profile`: a name or a
// path; "" = kGuideProfile. `problem` outlives the function that is returned. Throws InputError for
// a profile that cannot be read.
sweep::Predict make_prediction(const std::string& profile, const Problem& problem);

}  // namespace fusescope::cli
