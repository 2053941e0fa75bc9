#include "sweep/statistics.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace fusescope::sweep {
namespace {

double median_of_sorted(const std::vector<double>& sorted) {
  const std::size_t n = sorted.size();
  if (n == 0) {
    return 0;
  }
  return n % 2 == 1 ? sorted[n / 2] : (sorted[n / 2 - 1] + sorted[n / 2]) / 2;
}

// The binomial probabilities C(n, k) / 2^n for k = 0, 1, 2, ... in logarithms: those of many samples are
// too small for a double. Not by lgamma(), which writes a global that every thread shares.
class LogProbability {
 public:
  explicit LogProbability(std::size_t n) : n_(n), log_(-static_cast<double>(n) * std::log(2.0)) {}

  double value() const { return log_; }
  void next() {
    log_ += std::log(static_cast<double>(n_ - k_)) - std::log(static_cast<double>(k_ + 1));
    ++k_;
  }

 private:
  std::size_t n_;
  std::size_t k_ = 0;
  double log_;
};

}  // namespace

double median(std::vector<double> samples) {
  std::sort(samples.begin(), samples.end());
  return median_of_sorted(samples);
}

MedianInterval median_interval(std::vector<double> samples, double confidence) {
  MedianInterval interval;
  const std::size_t n = samples.size();
  if (n == 0) {
    return interval;
  }
  std::sort(samples.begin(), samples.end());
  interval.median = median_of_sorted(samples);

  // [samples[cut], samples[n - 1 - cut]] misses the median when at most `cut` samples lie on one
  // side of it. Cut as much as the confidence allows.
  std::size_t cut = 0;
  LogProbability probability(n);
  double outside = 2 * std::exp(probability.value());
  double next = outside;
  while (2 * (cut + 1) < n) {
    probability.next();
    next += 2 * std::exp(probability.value());
    if (1 - next < confidence) {
      break;
    }
    outside = next;
    ++cut;
  }
  interval.low = samples[cut];
  interval.high = samples[n - 1 - cut];
  interval.coverage = n == 1 ? 0 : 1 - outside;
  return interval;
}

}  // namespace fusescope::sweep
