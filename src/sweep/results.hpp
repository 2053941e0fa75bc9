#pragma once
// From the lines of a log to one result per config: visits pooled, finalists by their interleaved
// rounds, ranked with ties called ties.

#include <optional>
#include <vector>

#include "sweep/trial.hpp"

namespace fusescope::sweep {

// One trial per config of the search, in the order in which the log first has them, then the rungs,
// the last one of each label. Visits are pooled: wall_us holds the samples that count, normalised, of
// all of them (so drift is 1), raw_median_us is that of the samples as they were taken; a config whose
// last visit failed is failed. A config that was timed as a finalist has those samples alone, and
// stands before all others in a ranking. Base measurements are left out, but for a finalist that the search did not
// measure: they are what it has of the search, and its id follows those of the search.
std::vector<Trial> latest(const std::vector<Trial>& trials);

// The base config's measurements in a log until the search ended, in order, as if the search had made them: with
// drift_of() those so far divided out, which the log leaves in because they are the yardstick.
std::vector<Trial> base_measurements(const std::vector<Trial>& trials);

// Both have run: a finalist wins over one that was none, then a faster median, then the smaller id,
// so that a ranking does not depend on threads.
bool is_better(const Trial& a, const Trial& b);

// The fastest result of the search that ran (rungs take no part), or nothing. `trials`: a log's, or
// latest() of them.
std::optional<Trial> best_trial(const std::vector<Trial>& trials);

// Simulated times that differ by less, relative to the best, are called a tie: no model is that exact.
inline constexpr double kModelNoise = 0.001;

struct Ranked {
  Trial trial;
  bool ties_with_best = false;
};
// The search's results, fastest first. Finalists tie with the best of them by compare_rounds(); others
// where the 95% intervals of the medians overlap, or without intervals by kModelNoise. The others' medians
// are held against what the search measured of the best: its turns came later, and the machine drifts.
std::vector<Ranked> rank(const std::vector<Trial>& trials);

// A result's wall on the terms that rank() compares it with another on.
struct Wall {
  double median_us = 0;
  double half_ci_us = 0;
};
Wall wall_beside(const Trial& result, const Trial& other);
// On these terms; 0.01 = 1% slower.
double slower_than(const Trial& a, const Trial& best);

// Two configs timed in the same rounds: samples by round, normalised [us]. The rounds are drawn anew
// with replacement (a bootstrap that keeps the samples of a round together, because what disturbs a
// round disturbs all of them); 95% interval of median(b) / median(a) - 1.
struct RatioInterval {
  double ratio = 0;  // of the samples as they are
  double low = 0;
  double high = 0;
  bool tie() const { return low <= 0 && high >= 0; }
};
using RoundSamples = std::vector<std::vector<double>>;  // [round][sample]
RatioInterval compare_rounds(const RoundSamples& a, const RoundSamples& b);

// The rounds that a result of latest() pools.
RoundSamples rounds_of(const Trial& result);

}  // namespace fusescope::sweep
