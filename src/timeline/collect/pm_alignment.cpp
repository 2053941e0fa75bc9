#include "timeline/collect/pm_alignment.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdio>
#include <optional>

namespace fusescope::timeline {
namespace {

constexpr double kLaunchNs = 1'000;  // between a block's launch or leaving and what it writes down
constexpr double kBusyPercent = 50;

double length_ns(const PmSample& sample) {
  return static_cast<double>(sample.end_ns - sample.begin_ns);
}

// Samples [from, to) of a marker, those that it fills in part included.
struct Run {
  std::size_t from = 0;
  std::size_t to = 0;
};

// The first that are busy, in the order of the index; `at` maps it to a sample.
template <class At>
std::optional<Run> busy_run(std::size_t count, At at) {
  const std::size_t active = pm_metric(kSmsActive);
  const auto busy = [&](std::size_t i) { return at(i).values.at(active) > kBusyPercent; };
  std::size_t from = 0;
  while (from < count && !busy(from)) {
    ++from;
  }
  std::size_t to = from;
  while (to < count && busy(to)) {
    ++to;
  }
  if (from == 0 || from == count || to == count) {
    return std::nullopt;  // cut off, or none
  }
  return Run{from - 1, to + 1};
}

// Of the activity within the run: its centre, from the first sample's begin on, and its length.
struct Shape {
  double centre_ns = 0;
  double length_ns = 0;
};

Shape shape_of(const PmSamples& samples, const Run& run) {
  const std::size_t active = pm_metric(kSmsActive);
  const std::uint64_t origin = samples.samples.front().begin_ns;
  Shape shape;
  for (std::size_t i = run.from; i < run.to; ++i) {
    const PmSample& sample = samples.samples[i];
    const double weight = sample.values[active] / 100 * length_ns(sample);
    shape.centre_ns +=
        weight * (static_cast<double>(sample.begin_ns - origin) + length_ns(sample) / 2);
    shape.length_ns += weight;
  }
  shape.centre_ns /= shape.length_ns;
  return shape;
}

// How far the samples are from where the marker was.
std::optional<double> shift_of(const PmSamples& samples, const std::optional<Run>& run,
                               const ClockSpan& marker) {
  if (!run || marker.end_ns <= marker.begin_ns) {
    return std::nullopt;
  }
  const Shape shape = shape_of(samples, *run);
  const auto marked_ns = static_cast<double>(marker.end_ns - marker.begin_ns);
  const double interval_ns = length_ns(samples.samples[run->from]);
  if (std::abs(shape.length_ns - marked_ns) > 2 * (kLaunchNs + interval_ns)) {
    return std::nullopt;
  }
  const auto to_marker = static_cast<std::int64_t>(marker.begin_ns) -
                         static_cast<std::int64_t>(samples.samples.front().begin_ns);
  return static_cast<double>(to_marker) + marked_ns / 2 - shape.centre_ns;
}

}  // namespace

std::string align_samples(PmSamples& samples, const ClockSpan& first, const ClockSpan& last) {
  const std::string of_gpu = "PM samples of GPU " + std::to_string(samples.device);
  const std::size_t count = samples.samples.size();
  const auto forward = [&](std::size_t i) -> const PmSample& { return samples.samples[i]; };
  const auto backward = [&](std::size_t i) -> const PmSample& {
    return samples.samples[count - 1 - i];
  };
  std::optional<Run> last_run = busy_run(count, backward);
  if (last_run) {
    last_run = Run{count - last_run->to, count - last_run->from};
  }
  const auto at_first = shift_of(samples, busy_run(count, forward), first);
  const auto at_last = shift_of(samples, last_run, last);
  if (!at_first || !at_last) {
    return of_gpu + ": the marker at the " + (at_first ? "end" : "begin") +
           " of the session is not found among them";
  }
  const double apart_ns = std::abs(*at_last - *at_first);
  if (apart_ns > length_ns(samples.samples.back())) {
    char text[160];
    std::snprintf(text, sizeof text,
                  ": they are %.1f us from the kernels' clock at the begin of the session and %.1f "
                  "us at its end",
                  *at_first / 1e3, *at_last / 1e3);
    return of_gpu + text;
  }
  samples.shift_ns = (*at_first + *at_last) / 2;
  samples.bound_ns = apart_ns / 2 + kLaunchNs;
  const auto shift = static_cast<std::int64_t>(std::llround(samples.shift_ns));
  for (PmSample& sample : samples.samples) {
    sample.begin_ns += static_cast<std::uint64_t>(shift);
    sample.end_ns += static_cast<std::uint64_t>(shift);
  }
  return "";
}

}  // namespace fusescope::timeline
