#pragma once
// Keeps the times of a long sweep comparable: sets throttled samples apart and takes the machine's
// drift out. Everything is decided from what was measured before a trial, so that a sweep that is
// resumed, or replayed, decides the same.

#include <vector>

#include "sweep/sweep_config.hpp"
#include "sweep/trial.hpp"

namespace fusescope::sweep {

// By how much the machine is slower than at first, after these medians of the base config, in order: the middle of the
// last three over that of the first three, once all of the last are above, or below, all of the first; else 1.
double drift_of(const std::vector<double>& base_us);

class TimingGuard {
 public:
  explicit TimingGuard(const Measure& measure) : throttle_below_(measure.throttle_below) {}

  // Sets throttle_mhz (measure.throttle_below times the median clock of the trials so far, this one
  // included), drift (drift_of() the base config's medians so far) and the medians; then learns from the trial.
  void judge(Trial& trial);
  // Learns from a trial that the log had.
  void learn(const Trial& trial);

  int base_measurements() const { return static_cast<int>(base_us_.size()); }

 private:
  double throttle_below_;
  std::vector<double> clocks_;  // [MHz] median of each trial, sorted
  double throttle_mhz_ = 0;
  std::vector<double> base_us_;  // medians of the base config, in order
  double drift_ = 1;
};

}  // namespace fusescope::sweep
