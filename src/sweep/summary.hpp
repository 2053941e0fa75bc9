#pragma once
// What a sweep found: the ranking with ties called ties, the ladder, the failures; as text for a
// terminal and as CSV.

#include <optional>
#include <string>
#include <vector>

#include "sweep/trial.hpp"

namespace fusescope::sweep {

// Both have run: a faster median wins, then the smaller id, so that a ranking does not depend on
// threads.
bool is_better(const Trial& a, const Trial& b);

// The fastest trial of the search that ran (labelled trials take no part), or nothing.
std::optional<Trial> best_trial(const std::vector<Trial>& trials);

// Simulated times that differ by less, relative to the best, are called a tie: no model is that exact.
inline constexpr double kModelNoise = 0.001;

struct Ranked {
  Trial trial;
  bool ties_with_best = false;  // the medians' intervals overlap; without intervals: kModelNoise
};
// The search's trials that ran, fastest first.
std::vector<Ranked> rank(const std::vector<Trial>& trials);

struct SummaryOptions {
  std::size_t top = 10;            // rows of the ranking
  std::vector<std::string> knobs;  // a config is printed as the values of these (a sweep's axes);
                                   // of none: as what differs from the defaults
};
std::string summary_text(const std::vector<Trial>& trials, const SummaryOptions& options);

// One row per trial, a column per knob and per step; RFC 4180.
std::string to_csv(const std::vector<Trial>& trials);

}  // namespace fusescope::sweep
