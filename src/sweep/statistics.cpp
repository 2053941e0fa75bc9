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

// log of the binomial probability C(n, k) / 2^n
double log_probability(std::size_t n, std::size_t k) {
  const auto real = [](std::size_t count) { return static_cast<double>(count); };
  return std::lgamma(real(n) + 1) - std::lgamma(real(k) + 1) - std::lgamma(real(n - k) + 1) -
         real(n) * std::log(2.0);
}

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
  double outside = 2 * std::exp(log_probability(n, 0));
  double next = outside;
  while (2 * (cut + 1) < n) {
    next += 2 * std::exp(log_probability(n, cut + 1));
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
