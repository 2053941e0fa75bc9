#include <functional>
#include <map>
#include <queue>
#include <set>
#include <tuple>

#include "timeline/import/trace_writers.hpp"

namespace fusescope::timeline {
namespace {

// The lowest lane that is free when each interval begins.
class FreeLanes {
 public:
  int take(std::int64_t begin_ns, std::int64_t end_ns) {
    while (!busy_.empty() && busy_.top().first <= begin_ns) {
      free_.insert(busy_.top().second);
      busy_.pop();
    }
    int lane = lanes_;
    if (free_.empty()) {
      ++lanes_;
    } else {
      lane = *free_.begin();
      free_.erase(free_.begin());
    }
    busy_.emplace(end_ns, lane);
    return lane;
  }

 private:
  using Busy = std::pair<std::int64_t, int>;
  std::priority_queue<Busy, std::vector<Busy>, std::greater<>> busy_;
  std::set<int> free_;
  int lanes_ = 0;
};

// The lowest lane on which each interval nests.
class NestingLanes {
 public:
  int take(std::int64_t begin_ns, std::int64_t end_ns) {
    for (std::size_t lane = 0; lane < open_.size(); ++lane) {
      std::vector<std::int64_t>& ends = open_[lane];
      while (!ends.empty() && ends.back() <= begin_ns) {
        ends.pop_back();
      }
      if (ends.empty() || ends.back() >= end_ns) {
        ends.push_back(end_ns);
        return static_cast<int>(lane);
      }
    }
    open_.push_back({end_ns});
    return static_cast<int>(open_.size()) - 1;
  }

 private:
  std::vector<std::vector<std::int64_t>> open_;  // ends of the open slices, outermost first
};

std::string with_lane(std::string name, int lane) {
  return lane == 0 ? name : name + " lane " + std::to_string(lane);
}

}  // namespace

std::vector<TraceRow> rows_of(const Trace& trace) {
  using Key = std::tuple<std::int64_t, std::int64_t, std::int64_t, int>;
  std::map<Key, TraceRow> streams;
  std::vector<FreeLanes> free(trace.queues.size());
  for (std::uint32_t i = 0; i < trace.gpu.size(); ++i) {
    const GpuSlice& slice = trace.gpu[i];
    const Queue& queue = trace.queues[slice.queue];
    const int lane = free[slice.queue].take(slice.begin_ns, slice.end_ns);
    TraceRow& row = streams[{queue.process, queue.device, queue.stream, lane}];
    if (row.slices.empty()) {
      row.gpu = true;
      row.process = queue.process;
      row.number = queue.device;
      row.stream = queue.stream;
      row.lane = lane;
      row.name = with_lane("stream " + std::to_string(queue.stream), lane);
    }
    row.slices.push_back(i);
  }
  std::map<Key, TraceRow> threads;
  std::vector<NestingLanes> nesting(trace.threads.size());
  for (std::uint32_t i = 0; i < trace.host.size(); ++i) {
    const HostSlice& slice = trace.host[i];
    const Thread& thread = trace.threads[slice.thread];
    const int lane = nesting[slice.thread].take(slice.begin_ns, slice.end_ns);
    TraceRow& row = threads[{thread.process, thread.thread, slice.thread, lane}];
    if (row.slices.empty()) {
      row.process = thread.process;
      row.number = thread.thread;
      row.lane = lane;
      row.name = with_lane("thread " + std::to_string(thread.thread) +
                               (thread.name.empty() ? "" : " (" + thread.name + ")"),
                           lane);
    }
    row.slices.push_back(i);
  }
  std::vector<TraceRow> rows;
  for (auto* const group : {&streams, &threads}) {
    for (auto& [key, row] : *group) {
      rows.push_back(std::move(row));
    }
  }
  return rows;
}

}  // namespace fusescope::timeline
