#pragma once
// Keeps the times of a long sweep comparable: sets throttled samples apart and takes the machine's
// drift out. Everything is decided from what was measured before a trial, so that a sweep that is
// resumed, or replayed, decides the same.

#include <vector>

#include "sweep/statistics.hpp"
#include "sweep/sweep_config.hpp"
#include "sweep/trial.hpp"

namespace fusescope::sweep {

class TimingGuard {
 public:
  explicit TimingGuard(const Measure& measure) : throttle_below_(measure.throttle_below) {}

  // Sets throttle_mhz (measure.throttle_below times the median clock of the trials so far, this one
  // included), drift (the base config's latest median over its first, 1 while their 95% intervals
  // overlap) and the medians; then learns from the trial.
  void judge(Trial& trial);
  // Learns from a trial that the log had.
  void learn(const Trial& trial);

  int base_measurements() const { return base_measurements_; }

 private:
  double throttle_below_;
  std::vector<double> clocks_;  // [MHz] median of each trial, sorted
  double throttle_mhz_ = 0;
  int base_measurements_ = 0;
  MedianInterval first_base_;
  double drift_ = 1;
};

}  // namespace fusescope::sweep
