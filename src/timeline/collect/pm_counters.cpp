#include "timeline/collect/pm_counters.hpp"

#include <algorithm>
#include <array>
#include <utility>

namespace fusescope::timeline {
namespace {

struct Window {
  std::int64_t begin_ns = 0;
  std::int64_t end_ns = 0;
  // How much of it lies within another. [ns]
  std::int64_t within(const Window& other) const {
    return std::min(end_ns, other.end_ns) - std::max(begin_ns, other.begin_ns);
  }
};

Window window_of(const PmSample& sample, const ClockLine& clock, std::int64_t origin_ns) {
  return {clock.to_reference(sample.begin_ns) - origin_ns,
          clock.to_reference(sample.end_ns) - origin_ns};
}

double value_of(const PmSample& sample, std::size_t metric) {
  return metric < sample.values.size() ? sample.values[metric] : 0;
}

// `window_of_sample`: on the clock of `wall`.
template <class WindowOf>
LinkBytes sum_link_bytes(const PmSamples& samples, const Window& wall, WindowOf window_of_sample) {
  LinkBytes bytes;
  const std::array<std::pair<std::size_t, double*>, 6> sums = {{
      {pm_metric("nvltx__bytes.sum"), &bytes.sent},
      {pm_metric("nvlrx__bytes.sum"), &bytes.received},
      {pm_metric("nvltx__bytes_packet_request_data_user.sum"), &bytes.written},
      {pm_metric("nvltx__bytes_packet_response_data_user.sum"), &bytes.served},
      {pm_metric("nvlrx__bytes_packet_request_data_user.sum"), &bytes.written_here},
      {pm_metric("nvlrx__bytes_packet_response_data_user.sum"), &bytes.read},
  }};
  for (const PmSample& sample : samples.samples) {
    const Window window = window_of_sample(sample);
    const std::int64_t inside = window.within(wall);
    if (inside <= 0) {
      continue;
    }
    const double part =
        static_cast<double>(inside) / static_cast<double>(window.end_ns - window.begin_ns);
    for (const auto& [metric, sum] : sums) {
      *sum += part * value_of(sample, metric);
    }
  }
  return bytes;
}

}  // namespace

void add_pm_counters(const PmSamples& samples, int rank, const ClockLine& clock,
                     std::int64_t origin_ns, Timeline& timeline) {
  for (std::size_t metric = 0; metric < pm_metrics().size(); ++metric) {
    const PmMetric& what = pm_metrics()[metric];
    Counter counter{what.name, what.unit, rank, {}, {}};
    for (const PmSample& sample : samples.samples) {
      const Window window = window_of(sample, clock, origin_ns);
      if (window.within({timeline.begin_ns, timeline.end_ns}) <= 0) {
        continue;
      }
      // A counter's value holds from its time on.
      const std::int64_t after = counter.time_ns.empty() ? window.begin_ns : counter.time_ns.back();
      counter.time_ns.push_back(std::max(window.begin_ns, after));
      const double length =
          what.per_time ? static_cast<double>(window.end_ns - window.begin_ns) : 1;
      counter.value.push_back(value_of(sample, metric) / length);
    }
    if (!counter.time_ns.empty()) {
      timeline.counters.push_back(std::move(counter));
    }
  }
}

LinkBytes link_bytes(const PmSamples& samples, const ClockLine& clock, std::int64_t origin_ns,
                     const Timeline& timeline) {
  return sum_link_bytes(samples, {timeline.begin_ns, timeline.end_ns}, [&](const PmSample& sample) {
    return window_of(sample, clock, origin_ns);
  });
}

LinkBytes link_bytes(const PmSamples& samples, const ClockSpan& span) {
  const auto from_begin = [&](std::uint64_t ns) {
    return static_cast<std::int64_t>(ns - span.begin_ns);
  };
  return sum_link_bytes(samples, {0, from_begin(span.end_ns)}, [&](const PmSample& sample) {
    return Window{from_begin(sample.begin_ns), from_begin(sample.end_ns)};
  });
}

}  // namespace fusescope::timeline
