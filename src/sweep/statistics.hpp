#pragma once
// The median of a set of samples and how far it can be trusted. Samples in any unit; results in the
// same.

#include <vector>

namespace fusescope::sweep {

// A distribution-free interval of the median from order statistics: the narrowest pair of samples,
// symmetric in rank, that holds the median with at least `confidence` (binomial distribution of the
// number of samples below it). With fewer samples than that takes (5 or fewer at 95%) it is the
// whole range, and `coverage` says how little that covers.
struct MedianInterval {
  double median = 0;
  double low = 0;
  double high = 0;
  double coverage = 0;  // probability that [low, high] holds the median
  double half_width() const { return (high - low) / 2; }
};

double median(
    std::vector<double> samples);  // of an even number: the mean of the middle two; of none: 0
MedianInterval median_interval(std::vector<double> samples, double confidence = 0.95);

}  // namespace fusescope::sweep
