#include "sweep/timing_guard.hpp"

#include <algorithm>

namespace fusescope::sweep {

void TimingGuard::judge(Trial& trial) {
  if (trial.verdict != Verdict::ok || trial.wall_us.empty()) {
    return;
  }
  learn(trial);
  trial.throttle_mhz = throttle_mhz_;
  // The base config's own times are the yardstick: they stay as they are.
  trial.drift = trial.kind == TrialKind::base ? 1 : drift_;
  set_medians(trial);
}

void TimingGuard::learn(const Trial& trial) {
  if (trial.verdict != Verdict::ok || trial.wall_us.empty()) {
    return;
  }
  if (!trial.sm_clock_mhz.empty()) {
    const double clock = median(trial.sm_clock_mhz);
    clocks_.insert(std::upper_bound(clocks_.begin(), clocks_.end(), clock), clock);
    throttle_mhz_ = throttle_below_ * clocks_[clocks_.size() / 2];
  }
  if (trial.kind != TrialKind::base) {
    return;
  }
  Trial yardstick = trial;
  yardstick.throttle_mhz = throttle_mhz_;
  const MedianInterval now = median_interval(counted_walls(yardstick));
  if (base_measurements_++ == 0) {
    first_base_ = now;
  }
  const bool same = now.low <= first_base_.high && first_base_.low <= now.high;
  drift_ = same ? 1 : now.median / first_base_.median;
}

}  // namespace fusescope::sweep
