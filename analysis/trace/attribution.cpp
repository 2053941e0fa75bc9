#include "analysis/trace/attribution.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <unordered_map>

#include "analysis/trace/launches.hpp"
#include "analysis/trace/ranges.hpp"
#include "analysis/trace/select.hpp"
#include "analysis/trace/skew.hpp"
#include "analysis/trace/sweep.hpp"

namespace fusescope::analysis {
namespace {

using timeline::GpuSlice;
using timeline::HostSlice;
using timeline::Trace;

constexpr std::array kByPrecedence = {WorkClass::compute,       WorkClass::fused,
                                      WorkClass::communication, WorkClass::unclear,
                                      WorkClass::memory,        WorkClass::sync};
constexpr std::size_t kMostBeside = 5;

// What one sweep over a device gathers.
class DeviceSweep {
 public:
  DeviceSweep(const Trace& trace, const DeviceSlices& slices, const Launches& launches)
      : trace_(trace),
        slices_(slices),
        launches_(launches),
        credit_ns_(slices.intervals.size(), 0) {}

  void run(DeviceAttribution& out) {
    out.slices = static_cast<std::int64_t>(slices_.intervals.size());
    out.begin_ns = slices_.begin_ns;
    out.end_ns = slices_.end_ns;
    sweep(slices_.intervals, [&](const Stretch& stretch) { take(stretch, out); });
    // Before the first and behind the last counted slice: only slices that do not count.
    std::int64_t counted = out.idle.total_ns;
    for (const std::int64_t part : out.part_ns) {
      counted += part;
    }
    const std::int64_t around = out.span_ns() - counted;
    out.idle.total_ns += around;
    out.idle.unknown_ns += around;
    out.communication = rows_of(WorkClass::communication);
    out.fused = rows_of(WorkClass::fused);
    out.unclear = rows_of(WorkClass::unclear);
    out.streams = streams();
    RangeViews views = view_ranges(trace_, launches_, slices_.intervals, credit_ns_);
    out.ranges = std::move(views.ranges);
    out.steps = std::move(views.steps);
  }

 private:
  const GpuSlice& slice(std::uint32_t interval) const {
    return trace_.gpu[slices_.intervals[interval].slice];
  }

  void take(const Stretch& stretch, DeviceAttribution& out) {
    const std::int64_t length = stretch.length();
    for (std::size_t work = 0; work < kWorkClasses; ++work) {
      if (stretch.first[work] != kNoSlice) {
        out.union_ns[work] += length;
      }
    }
    const auto first = std::find_if(kByPrecedence.begin(), kByPrecedence.end(),
                                    [&](WorkClass work) { return stretch.runs(work); });
    if (first == kByPrecedence.end()) {
      idle(stretch, out.idle);
      return;
    }
    out.part_ns[static_cast<std::size_t>(*first)] += length;
    if (*first == WorkClass::communication) {
      credit_ns_[stretch.of(WorkClass::communication)] += length;
    }
    if (stretch.runs(WorkClass::communication) && stretch.runs(WorkClass::compute)) {
      out.overlap_ns += length;
      const std::uint64_t pair = std::uint64_t{slice(stretch.of(WorkClass::communication)).name}
                                     << 32 |
                                 slice(stretch.of(WorkClass::compute)).name;
      beside_ns_[pair] += length;
    }
  }

  void idle(const Stretch& stretch, Idle& out) const {
    out.total_ns += stretch.length();
    const HostSlice* call = stretch.next == kNoSlice ? nullptr : launches_.of(slice(stretch.next));
    if (call == nullptr) {
      out.unknown_ns += stretch.length();
      return;
    }
    const std::int64_t launched = std::clamp(call->end_ns, stretch.begin_ns, stretch.end_ns);
    out.launch_ns += launched - stretch.begin_ns;
    out.dependency_ns += stretch.end_ns - launched;
  }

  std::vector<KernelRow> rows_of(WorkClass work) const {
    std::map<std::uint32_t, KernelRow> rows;
    for (std::uint32_t i = 0; i < slices_.intervals.size(); ++i) {
      const Interval& interval = slices_.intervals[i];
      if (interval.work == work) {
        KernelRow& row = rows[slice(i).name];
        ++row.count;
        row.total_ns += interval.end_ns - interval.begin_ns;
        row.exposed_ns += credit_ns_[i];
      }
    }
    for (const auto& [pair, ns] : beside_ns_) {
      const auto row = rows.find(static_cast<std::uint32_t>(pair >> 32));
      if (work == WorkClass::communication && row != rows.end()) {
        row->second.beside.push_back(
            {std::string(trace_.names[static_cast<std::uint32_t>(pair)]), ns});
      }
    }
    std::vector<KernelRow> list;
    for (auto& [name, row] : rows) {
      row.name = trace_.names[name];
      std::sort(row.beside.begin(), row.beside.end(), [](const Beside& a, const Beside& b) {
        return a.ns != b.ns ? a.ns > b.ns : a.name < b.name;
      });
      row.beside.resize(std::min(row.beside.size(), kMostBeside));
      list.push_back(std::move(row));
    }
    std::stable_sort(list.begin(), list.end(), [](const KernelRow& a, const KernelRow& b) {
      return a.exposed_ns != b.exposed_ns ? a.exposed_ns > b.exposed_ns : a.total_ns > b.total_ns;
    });
    return list;
  }

  std::vector<StreamRow> streams() const {
    struct Row {
      StreamRow row;
      std::int64_t busy_until = INT64_MIN;
    };
    std::map<std::int64_t, Row> rows;
    for (std::uint32_t i = 0; i < slices_.intervals.size(); ++i) {
      const Interval& interval = slices_.intervals[i];
      auto& [row, busy_until] = rows[trace_.queues[slice(i).queue].stream];
      ++row.slices;
      row.overlapping += interval.begin_ns < busy_until ? 1 : 0;
      const std::int64_t from = std::max(interval.begin_ns, busy_until);
      row.busy_ns += std::max<std::int64_t>(0, interval.end_ns - from);
      busy_until = std::max(busy_until, interval.end_ns);
      if (interval.work == WorkClass::communication) {
        row.communication_ns += interval.end_ns - interval.begin_ns;
        row.exposed_ns += credit_ns_[i];
      }
    }
    std::vector<StreamRow> list;
    for (auto& [stream, row] : rows) {
      row.row.stream = stream;
      list.push_back(row.row);
    }
    return list;
  }

  const Trace& trace_;
  const DeviceSlices& slices_;
  const Launches& launches_;
  std::vector<std::int64_t> credit_ns_;
  std::unordered_map<std::uint64_t, std::int64_t> beside_ns_;  // (communication, compute) names
};

// Records of a fusescope timeline: a device is a rank.
int rank_of(const Trace& trace, const DeviceSlices& slices, std::size_t devices) {
  if (trace.in_kernel_records) {
    return static_cast<int>(slices.device);
  }
  return devices == 1 ? trace.rank : -1;
}

}  // namespace

double DeviceAttribution::overlap_share() const {
  const std::int64_t communication_ns = all(WorkClass::communication);
  return communication_ns == 0
             ? 0
             : static_cast<double>(overlap_ns) / static_cast<double>(communication_ns);
}

std::string label(const DeviceAttribution& device) {
  return device.rank >= 0 ? fmt::format("rank {}", device.rank)
                          : fmt::format("device {}", device.device);
}

std::string check_closing(const DeviceAttribution& device) {
  std::int64_t sum = device.idle.total_ns;
  for (const std::int64_t part : device.part_ns) {
    sum += part;
  }
  if (sum != device.span_ns()) {
    return fmt::format("{}: the parts sum to {} ns, the span is {} ns", label(device), sum,
                       device.span_ns());
  }
  const Idle& idle = device.idle;
  if (idle.launch_ns + idle.dependency_ns + idle.unknown_ns != idle.total_ns) {
    return fmt::format("{}: the parts of idle do not sum to {} ns", label(device), idle.total_ns);
  }
  std::int64_t exposed = 0;
  for (const KernelRow& row : device.communication) {
    exposed += row.exposed_ns;
  }
  if (exposed != device.exposed_ns()) {
    return fmt::format("{}: kernels' exposed times sum to {} ns, not {} ns", label(device), exposed,
                       device.exposed_ns());
  }
  return "";
}

TraceAttribution attribute_traces(std::span<const Trace> traces, const Rules& rules) {
  TraceAttribution out;
  out.rules = rules.name;
  std::vector<std::vector<DeviceSlices>> selected;
  for (std::size_t i = 0; i < traces.size(); ++i) {
    const Trace& trace = traces[i];
    const Launches launches(trace);
    selected.push_back(select_slices(trace, rules));
    for (const DeviceSlices& slices : selected.back()) {
      DeviceAttribution& device = out.devices.emplace_back();
      device.file = trace.file;
      device.trace = i;
      device.process = slices.process;
      device.device = slices.device;
      device.rank = rank_of(trace, slices, selected.back().size());
      device.in_kernel_records = trace.in_kernel_records;
      DeviceSweep(trace, slices, launches).run(device);
    }
    for (const std::string& note : trace.notes) {
      out.notes.push_back(trace.file + ": " + note);
    }
    if (selected.back().empty()) {
      out.notes.push_back(trace.file + ": nothing ran on a GPU");
    }
  }
  out.skew = find_skew(traces, selected);
  return out;
}

}  // namespace fusescope::analysis
