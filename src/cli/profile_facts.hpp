#pragma once
// What a report says about the simulator's device profile: each number's provenance, and the figures
// published about the machine beside the model's own.

#include <string>
#include <vector>

#include "reports/report.hpp"
#include "sweep/sweep_config.hpp"

namespace fusescope::cli {

struct ProfileFacts {
  std::string name;
  std::string about;
  std::vector<reports::ProfileNumber> numbers;
};
// `profile`: a name or a path; "" is the engine's own choice. Throws InputError.
ProfileFacts profile_facts(const std::string& profile);

// The published figures that hold for the sweep's shape, beside what the model predicts for the ladder's
// first fused rung and for `tuned`. Empty where nothing was published about this problem.
std::vector<reports::PublishedFigure> published_figures(const sweep::SweepConfig& sweep,
                                                        const Config& tuned);

// engine::Engine::identity() of the simulator on this profile as it is now.
std::string simulator_identity(const std::string& profile);

}  // namespace fusescope::cli
