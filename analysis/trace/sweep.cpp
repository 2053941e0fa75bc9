#include "analysis/trace/sweep.hpp"

#include <algorithm>
#include <queue>

namespace fusescope::analysis {
namespace {

// Running intervals of one class, the first-begun on top; those that ended leave when they surface.
using Running = std::priority_queue<std::uint32_t, std::vector<std::uint32_t>, std::greater<>>;

std::vector<std::int64_t> boundaries(std::span<const Interval> intervals) {
  std::vector<std::int64_t> times;
  times.reserve(intervals.size() * 2);
  for (const Interval& each : intervals) {
    times.push_back(each.begin_ns);
    times.push_back(each.end_ns);
  }
  std::sort(times.begin(), times.end());
  times.erase(std::unique(times.begin(), times.end()), times.end());
  return times;
}

}  // namespace

void sweep(std::span<const Interval> intervals, const std::function<void(const Stretch&)>& visit) {
  const std::vector<std::int64_t> times = boundaries(intervals);
  std::array<Running, kWorkClasses> running;
  std::uint32_t next = 0;
  for (std::size_t i = 0; i + 1 < times.size(); ++i) {
    for (; next < intervals.size() && intervals[next].begin_ns <= times[i]; ++next) {
      if (intervals[next].end_ns > times[i]) {
        running[static_cast<std::size_t>(intervals[next].work)].push(next);
      }
    }
    Stretch stretch;
    stretch.begin_ns = times[i];
    stretch.end_ns = times[i + 1];
    stretch.next = next < intervals.size() ? next : kNoSlice;
    for (std::size_t work = 0; work < running.size(); ++work) {
      while (!running[work].empty() && intervals[running[work].top()].end_ns <= times[i]) {
        running[work].pop();
      }
      stretch.first[work] = running[work].empty() ? kNoSlice : running[work].top();
    }
    visit(stretch);
  }
}

}  // namespace fusescope::analysis
