#pragma once
// What a sweep found: the ranking with ties called ties, the ladder, the failures; as text for a
// terminal.

#include <string>
#include <vector>

#include "sweep/results.hpp"
#include "sweep/runner.hpp"
#include "sweep/trial.hpp"

namespace fusescope::sweep {

struct SummaryOptions {
  std::size_t top = 10;            // rows of the ranking
  std::vector<std::string> knobs;  // a config is printed as the values of these (a sweep's axes);
                                   // of none: as what differs from the defaults
};
std::string summary_text(const std::vector<Trial>& trials, const SummaryOptions& options);

// What the sweep's time went into, and what disturbed it: throttled samples, and drift. `trials`: the
// log's.
std::string timing_text(const std::vector<Trial>& trials, const Outcome& outcome);

}  // namespace fusescope::sweep
