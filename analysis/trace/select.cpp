#include "analysis/trace/select.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <unordered_set>

#include "analysis/trace/ranges.hpp"

namespace fusescope::analysis {
namespace {

using timeline::GpuSlice;
using timeline::HostKind;
using timeline::HostSlice;
using timeline::Trace;

constexpr std::int64_t kMicrosecond = 1000;

std::int64_t floor_us(std::int64_t ns) {
  const std::int64_t rest = ns % kMicrosecond;
  return ns - (rest < 0 ? rest + kMicrosecond : rest);
}

std::int64_t ceil_us(std::int64_t ns) {
  return -floor_us(-ns);
}

// Which slices stay when the last of several profiler steps is dropped: those that a call before the
// last step's begin launched, and those that no call launched.
class StepFilter {
 public:
  explicit StepFilter(const Trace& trace) {
    std::size_t steps = 0;
    std::int64_t last_begin = 0;
    for (const HostSlice& slice : trace.host) {
      if (slice.kind == HostKind::range && is_profiler_step(trace.names[slice.name])) {
        last_begin = steps == 0 ? slice.begin_ns : std::max(last_begin, slice.begin_ns);
        ++steps;
      }
    }
    active_ = steps >= 2;
    if (active_) {
      for (const HostSlice& slice : trace.host) {
        if (ceil_us(slice.begin_ns) < ceil_us(last_begin)) {
          kept_.insert(slice.correlation);
        }
      }
    }
  }
  bool keeps(const GpuSlice& slice) const { return !active_ || kept_.contains(slice.correlation); }

 private:
  bool active_ = false;
  std::unordered_set<std::int64_t> kept_;
};

}  // namespace

std::vector<DeviceSlices> select_slices(const Trace& trace, const Rules& rules) {
  const std::vector<WorkClass> classes = classify(trace, rules);
  std::optional<StepFilter> filter;
  if (rules.drop_last_profiler_step) {
    filter.emplace(trace);
  }
  std::map<std::pair<std::int64_t, std::int64_t>, DeviceSlices> devices;
  for (std::uint32_t i = 0; i < trace.gpu.size(); ++i) {
    const GpuSlice& slice = trace.gpu[i];
    if (filter && !filter->keeps(slice)) {
      continue;
    }
    Interval interval{slice.begin_ns, slice.end_ns, i, classes[i]};
    if (rules.whole_microseconds && trace.unit_ns == kMicrosecond) {
      interval.begin_ns = ceil_us(interval.begin_ns);
      interval.end_ns = std::max(interval.begin_ns, floor_us(interval.end_ns));
    }
    if (interval.work == WorkClass::sync && rules.sync_is_idle && !trace.in_kernel_records) {
      continue;  // a wait may outlast all work; it does not stretch the span
    }
    const timeline::Queue& queue = trace.queues[slice.queue];
    const std::int64_t process = queue.process;
    auto [found, fresh] = devices.try_emplace({process, queue.device});
    DeviceSlices& device = found->second;
    if (fresh) {
      device.process = process;
      device.device = queue.device;
      device.begin_ns = interval.begin_ns;
      device.end_ns = interval.end_ns;
    }
    device.begin_ns = std::min(device.begin_ns, interval.begin_ns);
    device.end_ns = std::max(device.end_ns, interval.end_ns);
    const bool counts = interval.work != WorkClass::enclosing &&
                        !(interval.work == WorkClass::sync && rules.sync_is_idle);
    if (counts) {
      device.intervals.push_back(interval);
    }
  }
  std::vector<DeviceSlices> list;
  for (auto& [key, device] : devices) {
    // Rounding may have changed the order.
    std::stable_sort(device.intervals.begin(), device.intervals.end(),
                     [](const Interval& a, const Interval& b) { return a.begin_ns < b.begin_ns; });
    list.push_back(std::move(device));
  }
  return list;
}

}  // namespace fusescope::analysis
