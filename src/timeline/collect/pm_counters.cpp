#include "timeline/collect/pm_counters.hpp"

#include <algorithm>
#include <array>
#include <utility>

namespace fusescope::timeline {
namespace {

struct Window {
  std::int64_t begin_ns = 0;
  std::int64_t end_ns = 0;
  bool overlaps(const Timeline& timeline) const {
    return end_ns > begin_ns && begin_ns < timeline.end_ns && end_ns > timeline.begin_ns;
  }
};

Window window_of(const PmSample& sample, const ClockLine& clock, std::int64_t origin_ns) {
  return {clock.to_reference(sample.begin_ns) - origin_ns,
          clock.to_reference(sample.end_ns) - origin_ns};
}

double value_of(const PmSample& sample, std::size_t metric) {
  return metric < sample.values.size() ? sample.values[metric] : 0;
}

}  // namespace

void add_pm_counters(const PmSamples& samples, int rank, const ClockLine& clock,
                     std::int64_t origin_ns, Timeline& timeline) {
  for (std::size_t metric = 0; metric < pm_metrics().size(); ++metric) {
    const PmMetric& what = pm_metrics()[metric];
    Counter counter{what.name, what.unit, rank, {}, {}};
    for (const PmSample& sample : samples.samples) {
      const Window window = window_of(sample, clock, origin_ns);
      if (!window.overlaps(timeline)) {
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
    const Window window = window_of(sample, clock, origin_ns);
    if (!window.overlaps(timeline)) {
      continue;
    }
    const std::int64_t inside =
        std::min(window.end_ns, timeline.end_ns) - std::max(window.begin_ns, timeline.begin_ns);
    const double part =
        static_cast<double>(inside) / static_cast<double>(window.end_ns - window.begin_ns);
    for (const auto& [metric, sum] : sums) {
      *sum += part * value_of(sample, metric);
    }
  }
  return bytes;
}

}  // namespace fusescope::timeline
