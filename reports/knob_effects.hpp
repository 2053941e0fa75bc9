#pragma once
// What turning one knob does in a sweep, everything else as it is: at the best config, and over all pairs of
// trials that differ in that knob alone.

#include <optional>
#include <string>
#include <vector>

#include "reports/findings.hpp"
#include "reports/report.hpp"
#include "reports/table.hpp"

namespace fusescope::reports {

struct KnobEffect {
  std::string knob;
  std::string from;  // the best config's value
  std::string to;
  std::optional<double>
      at_best_us;         // wall with `to` less the best's; none: that config was not run
  double half_ci_us = 0;  // 95%, of at_best_us; 0 for a simulation
  double median_us = 0;   // over the pairs
  std::size_t pairs = 0;
};

// Of the swept knobs, the most influential first.
std::vector<KnobEffect> knob_effects(const ReportInput& input, const Findings& findings);

Table knob_effect_table(const ReportInput& input, const Findings& findings);

}  // namespace fusescope::reports
