#pragma once
// The downhill simplex of Nelder and Mead (Computer Journal 7, 1965): a minimum of a function of a few
// variables without derivatives. Deterministic.

#include <functional>
#include <vector>

namespace fusescope::engine::sim {

struct Minimum {
  std::vector<double> at;
  double value = 0;
  int evaluations = 0;
};

// Starts from `start` and from a point `step` away along each axis. Stops after `most_evaluations`, or once the
// simplex's values differ by less than `tolerance`. The function may return infinity where it has no value, but
// not at `start`.
Minimum minimise(const std::function<double(const std::vector<double>&)>& function,
                 const std::vector<double>& start, double step, double tolerance,
                 int most_evaluations);

}  // namespace fusescope::engine::sim
