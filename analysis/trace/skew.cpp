#include "analysis/trace/skew.hpp"

#include <algorithm>
#include <cstdint>
#include <map>

namespace fusescope::analysis {
namespace {

using Arrivals = std::vector<const Interval*>;  // of one kernel on one device, by begin

SkewRow compare(std::string_view name, const std::vector<Arrivals>& devices) {
  SkewRow row;
  row.name = name;
  row.launches = static_cast<std::int64_t>(devices.front().size());
  row.wait_ns.resize(devices.size());
  row.transfer_ns.resize(devices.size());
  row.last.resize(devices.size());
  for (std::size_t k = 0; k < devices.front().size(); ++k) {
    std::int64_t first = INT64_MAX;
    std::int64_t last = INT64_MIN;
    std::int64_t first_end = INT64_MAX;
    std::size_t last_device = 0;
    for (std::size_t device = 0; device < devices.size(); ++device) {
      const Interval& launch = *devices[device][k];
      first = std::min(first, launch.begin_ns);
      first_end = std::min(first_end, launch.end_ns);
      if (launch.begin_ns > last) {
        last = launch.begin_ns;
        last_device = device;
      }
    }
    ++row.last[last_device];
    row.apart += last > first_end ? 1 : 0;
    if (__builtin_add_overflow(row.total_skew_ns, last - first, &row.total_skew_ns)) {
      row.total_skew_ns = INT64_MAX;  // clocks that have nothing to do with each other
    }
    row.most_skew_ns = std::max(row.most_skew_ns, last - first);
    for (std::size_t device = 0; device < devices.size(); ++device) {
      const Interval& launch = *devices[device][k];
      const std::int64_t arrived = std::min(last, launch.end_ns);
      row.wait_ns[device] += arrived - launch.begin_ns;
      row.transfer_ns[device] += launch.end_ns - arrived;
    }
  }
  return row;
}

}  // namespace

std::vector<SkewRow> find_skew(std::span<const timeline::Trace> traces,
                               std::span<const std::vector<DeviceSlices>> slices) {
  std::map<std::string_view, std::vector<Arrivals>> by_name;
  std::size_t devices = 0;
  for (const auto& of_trace : slices) {
    devices += of_trace.size();
  }
  std::size_t device = 0;
  for (std::size_t i = 0; i < traces.size(); ++i) {
    for (const DeviceSlices& mine : slices[i]) {
      for (const Interval& interval : mine.intervals) {
        const timeline::GpuSlice& slice = traces[i].gpu[interval.slice];
        if (interval.work == WorkClass::communication && slice.kind == timeline::GpuKind::kernel) {
          auto& arrivals = by_name[traces[i].names[slice.name]];
          arrivals.resize(devices);
          arrivals[device].push_back(&interval);
        }
      }
      ++device;
    }
  }
  std::vector<SkewRow> rows;
  for (const auto& [name, arrivals] : by_name) {
    const std::size_t launches = arrivals.front().size();
    const bool matched =
        launches > 0 && std::all_of(arrivals.begin(), arrivals.end(),
                                    [&](const Arrivals& each) { return each.size() == launches; });
    if (matched && devices > 1) {
      rows.push_back(compare(name, arrivals));
    }
  }
  std::stable_sort(rows.begin(), rows.end(), [](const SkewRow& a, const SkewRow& b) {
    return a.total_skew_ns > b.total_skew_ns;
  });
  return rows;
}

}  // namespace fusescope::analysis
