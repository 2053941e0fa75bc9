#include "cli/trial_analysis.hpp"

#include "analysis/summary.hpp"
#include "base/error.hpp"

namespace fusescope::cli {

void analyse_trial(const timeline::Timeline& timeline, sweep::Trial& trial) {
  const std::string violation = timeline::check(timeline);
  if (!violation.empty()) {
    throw CheckFailure("the recorded timeline breaks the event contract: " + violation);
  }
  const analysis::Attribution attribution = analysis::attribute(timeline);
  if (!attribution.refusal.empty()) {
    throw CheckFailure("nothing is attributed: " + attribution.refusal);
  }
  trial.steps_us = analysis::steps_us(attribution.path);
  trial.timeline_wall_us = static_cast<double>(attribution.wall_ns) / 1e3;
  trial.exposed_us = static_cast<double>(attribution.exposed_ns) / 1e3;
}

}  // namespace fusescope::cli
