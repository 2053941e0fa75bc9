#include "analysis/trace/skew.hpp"

#include <algorithm>
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
  std::int64_t skew_sum = 0;
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
    skew_sum += last - first;
    row.most_skew_ns = std::max(row.most_skew_ns, last - first);
    for (std::size_t device = 0; device < devices.size(); ++device) {
      const Interval& launch = *devices[device][k];
      const std::int64_t arrived = std::min(last, launch.end_ns);
      row.wait_ns[device] += arrived - launch.begin_ns;
      row.transfer_ns[device] += launch.end_ns - arrived;
    }
  }
  row.mean_skew_ns = skew_sum / std::max<std::int64_t>(1, row.launches);
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
    const bool matched = std::all_of(arrivals.begin(), arrivals.end(), [&](const Arrivals& each) {
      return each.size() == arrivals.front().size() && !each.empty();
    });
    if (matched && devices > 1) {
      rows.push_back(compare(name, arrivals));
    }
  }
  std::stable_sort(rows.begin(), rows.end(), [](const SkewRow& a, const SkewRow& b) {
    return a.mean_skew_ns * a.launches > b.mean_skew_ns * b.launches;
  });
  return rows;
}

}  // namespace fusescope::analysis
