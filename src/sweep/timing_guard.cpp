#include "sweep/timing_guard.hpp"

#include <algorithm>

#include "sweep/statistics.hpp"

namespace fusescope::sweep {
namespace {

// A GPU at its power limit runs the same config at walls several percent apart, minute by minute and config by config:
// one measurement of the base says little of what else is measured then. Only what stays is taken out.
constexpr std::ptrdiff_t kEnds = 3;

}  // namespace

double drift_of(const std::vector<double>& base_us) {
  if (std::ssize(base_us) < 2 * kEnds) {
    return 1;
  }
  const std::vector<double> first(base_us.begin(), base_us.begin() + kEnds);
  const std::vector<double> last(base_us.end() - kEnds, base_us.end());
  const auto [least, most] = std::minmax_element(first.begin(), first.end());
  const auto [low, high] = std::minmax_element(last.begin(), last.end());
  return *low > *most || *high < *least ? median(last) / median(first) : 1;
}

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
  base_us_.push_back(median(counted_walls(yardstick)));
  drift_ = drift_of(base_us_);
}

}  // namespace fusescope::sweep
