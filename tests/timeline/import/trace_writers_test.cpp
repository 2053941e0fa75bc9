// Foreign traces for viewers: lanes, nothing lost, and what was written reads back the same.

#include "timeline/import/trace_writers.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <sstream>

#include "base/error.hpp"
#include "perfetto_decoder.hpp"
#include "traces.hpp"

namespace fusescope::timeline::test {
namespace {

Trace with_overlaps() {
  return read_text(
      trace_of(slice("kernel", "a", "0", "10", 7, 1), slice("kernel", "b", "8", "10", 7, 2),
               slice("kernel", "c", "10", "5", 7, 3), slice("kernel", "d", "0", "20", 8, 4),
               slice("user_annotation", "outer", "0", "20", 1),
               slice("user_annotation", "inner", "5", "5", 1),
               slice("user_annotation", "across", "15", "20", 1)));
}

// Every slice once; slices of a stream's row do not overlap, those of a thread's nest.
void expect_sound(const Trace& trace) {
  std::set<std::uint32_t> gpu;
  std::set<std::uint32_t> host;
  for (const TraceRow& row : rows_of(trace)) {
    std::vector<std::int64_t> open;
    for (const std::uint32_t index : row.slices) {
      EXPECT_TRUE((row.gpu ? gpu : host).insert(index).second);
      const std::int64_t begin = row.gpu ? trace.gpu[index].begin_ns : trace.host[index].begin_ns;
      const std::int64_t end = row.gpu ? trace.gpu[index].end_ns : trace.host[index].end_ns;
      while (!open.empty() && open.back() <= begin) {
        open.pop_back();
      }
      EXPECT_TRUE(open.empty() || (!row.gpu && open.back() >= end)) << row.name;
      open.push_back(end);
    }
  }
  EXPECT_EQ(gpu.size(), trace.gpu.size());
  EXPECT_EQ(host.size(), trace.host.size());
}

void expect_same(const Trace& a, const Trace& b) {
  ASSERT_EQ(a.gpu.size(), b.gpu.size());
  ASSERT_EQ(a.host.size(), b.host.size());
  const auto texts = [](const Trace& trace) {
    std::multiset<std::string> out;
    for (const GpuSlice& slice : trace.gpu) {
      const Queue& queue = trace.queues[slice.queue];
      out.insert(std::to_string(slice.begin_ns) + " " + std::to_string(slice.end_ns) + " " +
                 std::to_string(queue.device) + " " + std::to_string(queue.stream) + " " +
                 std::to_string(slice.correlation) + " " + std::string(trace.names[slice.name]));
    }
    for (const HostSlice& slice : trace.host) {
      out.insert(std::to_string(slice.begin_ns) + " " + std::to_string(slice.end_ns) + " " +
                 std::to_string(static_cast<int>(slice.kind)) + " " +
                 std::to_string(slice.correlation) + " " + std::string(trace.names[slice.name]));
    }
    return out;
  };
  EXPECT_EQ(texts(a), texts(b));
}

TEST(TraceWriters, OverlappingSlicesGetLanes) {
  const Trace trace = with_overlaps();
  expect_sound(trace);
  std::vector<std::string> names;
  for (const TraceRow& row : rows_of(trace)) {
    names.push_back(row.name);
  }
  EXPECT_EQ(names, (std::vector<std::string>{"stream 7", "stream 7 lane 1", "stream 8", "thread 1",
                                             "thread 1 lane 1"}));
}

TEST(TraceWriters, ChromeJsonReadsBackTheSame) {
  const Trace trace = with_overlaps();
  std::ostringstream out;
  write_trace_chrome(trace, out);
  expect_same(trace, read_text(out.str()));
}

// Read by the tests' own decoder of the published format.
void expect_perfetto(const Trace& trace) {
  std::ostringstream out;
  write_trace_perfetto(trace, out);
  const DecodedTrace decoded = decode_perfetto(out.str());
  std::set<std::uint64_t> tracks;
  for (const DecodedTrack& track : decoded.tracks) {
    EXPECT_TRUE(tracks.insert(track.uuid).second) << track.name;
  }
  std::map<std::uint64_t, int> open;
  std::map<std::uint64_t, std::uint64_t> last;
  std::size_t begins = 0;
  for (const DecodedEvent& event : decoded.events) {
    EXPECT_TRUE(tracks.contains(event.track));
    EXPECT_GE(event.time_ns, last[event.track]);
    last[event.track] = event.time_ns;
    open[event.track] += event.type == 1 ? 1 : -1;
    EXPECT_GE(open[event.track], 0);
    begins += event.type == 1 ? 1 : 0;
  }
  for (const auto& [track, depth] : open) {
    EXPECT_EQ(depth, 0);
  }
  EXPECT_EQ(begins, trace.gpu.size() + trace.host.size());
}

TEST(TraceWriters, PerfettoHoldsEverySliceNested) {
  expect_perfetto(with_overlaps());
}

TEST(TraceWriters, ForeignTracesHaveNoFst) {
  EXPECT_THROW(write_trace(with_overlaps(), "never.fst", "fst"), InputError);
}

TEST(TraceWriters, RealTracesKeepEverySlice) {
  for (const char* name : {"kineto-b200-overlapping-kernels.json.gz", "kineto-a100-nccl.json.gz",
                           "nsys-h100-2gpu.sqlite.gz"}) {
    const std::string path = real_trace(name);
    if (path.empty()) {
      GTEST_SKIP() << name << " is not here";
    }
    const Trace trace = read_trace(path);
    expect_sound(trace);
    std::ostringstream out;
    write_trace_chrome(trace, out);
    expect_same(trace, read_text(out.str()));
    expect_perfetto(trace);
  }
}

TEST(TraceWriters, ProgrammaticDependentLaunchesOfB200AreOnSeparateLanes) {
  const std::string path = real_trace("kineto-b200-overlapping-kernels.json.gz");
  if (path.empty()) {
    GTEST_SKIP() << "kineto-b200-overlapping-kernels.json.gz is not here";
  }
  const Trace trace = read_trace(path);
  std::vector<int> lane(trace.gpu.size(), -1);
  for (const TraceRow& row : rows_of(trace)) {
    for (const std::uint32_t index : row.slices) {
      if (row.gpu) {
        lane[index] = row.lane;
      }
    }
  }
  EXPECT_EQ(std::count(lane.begin(), lane.end(), -1), 0);
  std::size_t pairs = 0;
  for (std::size_t i = 1; i < trace.gpu.size(); ++i) {  // one stream, by begin
    if (trace.gpu[i].begin_ns < trace.gpu[i - 1].end_ns) {
      ++pairs;
      EXPECT_NE(lane[i], lane[i - 1]);
    }
  }
  EXPECT_EQ(pairs, 74U);
}

}  // namespace
}  // namespace fusescope::timeline::test
