#pragma once
// `fusescope sweep --json`: what a sweep found, for programs.

#include <string>
#include <vector>

#include "base/json_reader.hpp"
#include "sweep/runner.hpp"

namespace fusescope::cli {

// Times in us. "ending": complete, budget_spent or stopped. "best" is null when nothing ran; "ties" are
// the ids whose times do not differ from the best's beyond their intervals.
Json sweep_json(const std::string& folder, const std::vector<sweep::Trial>& trials,
                const sweep::Outcome& outcome);

}  // namespace fusescope::cli
