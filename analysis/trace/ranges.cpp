#include "analysis/trace/ranges.hpp"

#include <algorithm>
#include <map>
#include <unordered_map>

namespace fusescope::analysis {
namespace {

using timeline::HostKind;
using timeline::HostSlice;
using timeline::Trace;

constexpr std::size_t kDeepest = 64;  // open ranges that count; deeper ones are left out

// emit_nvtx() makes each range's text unique: "aten::add, seq = 12, op_id = 99".
std::string_view common_name(std::string_view text) {
  return text.substr(0, std::min(text.find(", seq = "), text.find(", op_id = ")));
}

struct Launch {
  std::uint32_t thread;
  std::int64_t time_ns;
  std::uint32_t interval;
};

void credit(RangeRow& row, const Interval& interval, std::int64_t exposed_ns) {
  ++row.slices;
  const std::int64_t length = interval.end_ns - interval.begin_ns;
  if (interval.work == WorkClass::compute) {
    row.compute_ns += length;
  } else if (interval.work == WorkClass::communication) {
    row.communication_ns += length;
  }
  row.exposed_ns += exposed_ns;
}

class RangeWalk {
 public:
  RangeWalk(const Trace& trace, std::span<const Interval> intervals,
            std::span<const std::int64_t> exposed_ns)
      : trace_(trace), intervals_(intervals), exposed_ns_(exposed_ns) {}

  // `ranges` and `launches` of one thread, by time.
  void walk(std::span<const std::uint32_t> ranges, std::span<const Launch> launches) {
    open_.clear();
    std::size_t next = 0;
    for (const Launch& launch : launches) {
      for (; next < ranges.size() && trace_.host[ranges[next]].begin_ns <= launch.time_ns; ++next) {
        drop_ended(trace_.host[ranges[next]].begin_ns);
        enter(ranges[next]);
      }
      drop_ended(launch.time_ns);
      for (std::size_t i = 0; i < open_.size(); ++i) {
        const auto same = [&](const Open& each) { return each.row == open_[i].row; };
        if (std::none_of(open_.begin(), open_.begin() + static_cast<std::ptrdiff_t>(i), same)) {
          credit(rows_[open_[i].row], intervals_[launch.interval], exposed_ns_[launch.interval]);
        }
      }
    }
    for (; next < ranges.size(); ++next) {
      ++rows_[row_of(ranges[next])].ranges;
    }
  }

  std::vector<RangeRow> take() {
    std::erase_if(rows_, [](const RangeRow& row) { return row.slices == 0; });
    std::stable_sort(rows_.begin(), rows_.end(), [](const RangeRow& a, const RangeRow& b) {
      return a.exposed_ns != b.exposed_ns ? a.exposed_ns > b.exposed_ns
                                          : a.communication_ns > b.communication_ns;
    });
    return std::move(rows_);
  }

 private:
  struct Open {
    std::int64_t end_ns;
    std::size_t row;
  };

  void enter(std::uint32_t range) {
    const std::size_t row = row_of(range);
    ++rows_[row].ranges;
    if (open_.size() < kDeepest) {
      open_.push_back({trace_.host[range].end_ns, row});
    }
  }

  void drop_ended(std::int64_t time_ns) {
    std::erase_if(open_, [&](const Open& each) { return each.end_ns <= time_ns; });
  }

  std::size_t row_of(std::uint32_t range) {
    const std::string_view text = common_name(trace_.names[trace_.host[range].name]);
    const auto [found, fresh] = row_by_name_.try_emplace(text, rows_.size());
    if (fresh) {
      rows_.emplace_back().name = text;
    }
    return found->second;
  }

  const Trace& trace_;
  std::span<const Interval> intervals_;
  std::span<const std::int64_t> exposed_ns_;
  std::vector<Open> open_;
  std::vector<RangeRow> rows_;
  std::unordered_map<std::string_view, std::size_t> row_by_name_;
};

std::vector<RangeRow> view_steps(const Trace& trace, std::span<const Interval> intervals,
                                 std::span<const std::int64_t> exposed_ns,
                                 std::span<const Launch> launches,
                                 const std::vector<std::uint32_t>& steps) {
  std::vector<RangeRow> rows(steps.size());
  for (std::size_t i = 0; i < steps.size(); ++i) {
    rows[i].name = trace.names[trace.host[steps[i]].name];
    rows[i].ranges = 1;
  }
  for (const Launch& launch : launches) {
    const auto after = std::upper_bound(
        steps.begin(), steps.end(), launch.time_ns,
        [&](std::int64_t time, std::uint32_t step) { return time < trace.host[step].begin_ns; });
    if (after != steps.begin() && launch.time_ns < trace.host[*(after - 1)].end_ns) {
      credit(rows[static_cast<std::size_t>(after - steps.begin()) - 1], intervals[launch.interval],
             exposed_ns[launch.interval]);
    }
  }
  return rows;
}

}  // namespace

bool is_profiler_step(std::string_view name) {
  return name.find("ProfilerStep") != std::string_view::npos;
}

RangeViews view_ranges(const Trace& trace, const Launches& launches,
                       std::span<const Interval> intervals,
                       std::span<const std::int64_t> exposed_ns) {
  std::vector<Launch> points;
  for (std::uint32_t i = 0; i < intervals.size(); ++i) {
    if (const HostSlice* call = launches.of(trace.gpu[intervals[i].slice])) {
      points.push_back({call->thread, call->begin_ns, i});
    }
  }
  std::map<std::uint32_t, std::vector<std::uint32_t>> ranges_of_thread;
  std::vector<std::uint32_t> steps;
  for (std::uint32_t i = 0; i < trace.host.size(); ++i) {
    if (trace.host[i].kind == HostKind::range) {
      if (is_profiler_step(trace.names[trace.host[i].name])) {
        steps.push_back(i);
      } else {
        ranges_of_thread[trace.host[i].thread].push_back(i);
      }
    }
  }
  RangeViews views;
  views.steps = view_steps(trace, intervals, exposed_ns, points, steps);
  std::map<std::uint32_t, std::vector<Launch>> launches_of_thread;
  for (const Launch& point : points) {
    launches_of_thread[point.thread].push_back(point);
  }
  RangeWalk walk(trace, intervals, exposed_ns);
  for (auto& [thread, mine] : launches_of_thread) {
    std::stable_sort(mine.begin(), mine.end(),
                     [](const Launch& a, const Launch& b) { return a.time_ns < b.time_ns; });
    walk.walk(ranges_of_thread[thread], mine);
  }
  views.ranges = walk.take();
  return views;
}

}  // namespace fusescope::analysis
