// Timelines as Nsight Systems exports: read back by our own reader, and by public tools where they are
// installed.

#include <sqlite3.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <fstream>
#include <map>
#include <sstream>
#include <tuple>

#include "timeline/writers.hpp"
#include "tiny_layer.hpp"
#include "traces.hpp"

namespace fusescope::timeline::test {
namespace {

std::string written(const Timeline& timeline) {
  std::ostringstream out;
  write_nsys_sqlite(timeline, out);
  return out.str();
}

Trace read_back(const Timeline& timeline) {
  const std::string bytes = written(timeline);
  return read_trace("written.sqlite", bytes.data(), bytes.size());
}

using Slice = std::tuple<std::int64_t, std::string, std::int64_t, std::int64_t>;

TEST(NsysWriter, EveryEventComesBack) {
  const Timeline timeline = tiny_layer();
  const Trace trace = read_back(timeline);
  EXPECT_TRUE(trace.notes.empty()) << trace.notes.front();
  std::vector<Slice> want_kernels;
  std::vector<Slice> want_ranges;
  for (int rank = 0; rank < timeline.wiring.ranks; ++rank) {
    want_ranges.emplace_back(rank + 1, "iteration: the only iteration", timeline.begin_ns,
                             timeline.end_ns);
  }
  std::map<std::uint32_t, std::int64_t> step_ended;  // by stream
  for (const Event& event : timeline.events) {
    const Track& track = timeline.tracks[event.track];
    std::string name(timeline::name(event.kind));
    std::int64_t begin_ns = event.begin_ns;
    if (track.stage == Stage::stream) {
      name += event.index < 0 ? "" : " " + std::to_string(event.index);
      want_kernels.emplace_back(track.device, name, event.begin_ns, event.end_ns);
      // A step's range takes the gap before it in.
      begin_ns = step_ended.try_emplace(event.track, begin_ns).first->second;
      step_ended[event.track] = event.end_ns;
    }
    want_ranges.emplace_back(track.rank + 1, name, begin_ns, event.end_ns);
  }
  std::vector<Slice> kernels;
  for (const GpuSlice& slice : trace.gpu) {
    EXPECT_EQ(slice.kind, GpuKind::kernel);
    kernels.emplace_back(trace.queues[slice.queue].device, std::string(trace.names[slice.name]),
                         slice.begin_ns, slice.end_ns);
  }
  std::vector<Slice> ranges;
  std::size_t calls = 0;
  for (const HostSlice& slice : trace.host) {
    calls += slice.kind == HostKind::call;
    if (slice.kind == HostKind::range) {
      ranges.emplace_back(trace.threads[slice.thread].process, std::string(trace.names[slice.name]),
                          slice.begin_ns, slice.end_ns);
    }
  }
  for (auto* list : {&want_kernels, &want_ranges, &kernels, &ranges}) {
    std::sort(list->begin(), list->end());
  }
  EXPECT_EQ(kernels, want_kernels);
  EXPECT_EQ(ranges, want_ranges);
  EXPECT_EQ(calls, kernels.size());
}

// A lane is a thread, so that ranges of a thread nest.
TEST(NsysWriter, TracksAreThreads) {
  const Timeline timeline = tiny_layer();
  EXPECT_EQ(read_back(timeline).threads.size(), timeline.tracks.size());
}

TEST(NsysWriter, NobodyTakesASimulationForAMeasurement) {
  Timeline timeline = tiny_layer();
  Trace trace = read_back(timeline);
  EXPECT_TRUE(trace.simulated);
  EXPECT_EQ(trace.device_name, "sketch (simulated)");
  EXPECT_EQ(trace.source.substr(0, 10), "fusescope ");
  timeline.meta.provenance = Provenance::measured;
  trace = read_back(timeline);
  EXPECT_FALSE(trace.simulated);
  EXPECT_EQ(trace.device_name, "sketch (measured)");
}

// Our own reader has no use for metrics: SQLite itself is asked, as public readers do, by GPU and name.
TEST(NsysWriter, CountersAreMetricsOfTheirGpu) {
  Timeline timeline = tiny_layer();
  timeline.counters = {{"NVLink sent", "GB/s", 1, {1'000, 2'000}, {123.4567, 0}},
                       {"tensor pipe active", "%", 1, {1'000}, {61.5}}};
  int device = -1;
  for (const Track& track : timeline.tracks) {
    device = track.rank == 1 ? track.device : device;
  }
  std::string bytes = written(timeline);
  sqlite3* handle = nullptr;
  ASSERT_EQ(sqlite3_open(":memory:", &handle), SQLITE_OK);
  const auto size = static_cast<sqlite3_int64>(bytes.size());
  ASSERT_EQ(sqlite3_deserialize(handle, "main", reinterpret_cast<unsigned char*>(bytes.data()),
                                size, size, SQLITE_DESERIALIZE_READONLY),
            SQLITE_OK);
  std::vector<std::string> rows;
  const int result = sqlite3_exec(
      handle,
      "SELECT (typeId & 4294967295) || ' ' || metricName || ' ' || timestamp || ' ' || value FROM "
      "GPU_METRICS JOIN TARGET_INFO_GPU_METRICS USING (typeId, metricId) ORDER BY metricId, "
      "timestamp",
      [](void* into, int, char** values, char**) {
        static_cast<std::vector<std::string>*>(into)->emplace_back(values[0]);
        return 0;
      },
      &rows, nullptr);
  sqlite3_close(handle);
  ASSERT_EQ(result, SQLITE_OK);
  const std::string gpu = std::to_string(device);
  EXPECT_EQ(rows, (std::vector<std::string>{gpu + " NVLink sent [MB/s] 1000 123457",
                                            gpu + " NVLink sent [MB/s] 2000 0",
                                            gpu + " tensor pipe active [%] 1000 62"}));
}

TEST(NsysWriter, TheSameTimelineGivesTheSameBytes) {
  EXPECT_EQ(written(tiny_layer()), written(tiny_layer()));
}

TEST(NsysWriter, AnEmptyTimelineIsADatabase) {
  EXPECT_EQ(written({}).substr(0, 15), "SQLite format 3");
}

// What a command prints, or nothing where it is not installed.
std::string output_of(const std::string& command) {
  std::FILE* pipe = popen((command + " 2>/dev/null").c_str(), "r");
  if (pipe == nullptr) {
    return "";
  }
  std::string text;
  std::array<char, 4096> piece;
  for (std::size_t size = 0; (size = std::fread(piece.data(), 1, piece.size(), pipe)) > 0;) {
    text.append(piece.data(), size);
  }
  return pclose(pipe) == 0 ? text : "";
}

class PublicReader : public testing::TestWithParam<const char*> {};

TEST_P(PublicReader, ShowsKernelsTimesAndRanges) {
  const std::string tool = GetParam();
  if (output_of(tool + " --help").empty()) {
    GTEST_SKIP() << tool << " is not installed";
  }
  std::string pattern = (std::filesystem::temp_directory_path() / "fusescope-nsys-XXXXXX").string();
  const std::filesystem::path folder = ::mkdtemp(pattern.data());
  const std::string file = (folder / "written.sqlite").string();
  const Timeline timeline = tiny_layer();
  std::ofstream(file, std::ios::binary) << written(timeline);

  const std::string info = output_of(tool + " info " + file);
  EXPECT_NE(info.find("GPUs: [0, 1]"), std::string::npos) << info;
  EXPECT_NE(info.find("sketch (simulated)"), std::string::npos) << info;
  const std::string table = output_of(tool + " export-csv " + file + " --gpu 1 --trim 0 1");
  int kernels = 0;
  for (const Event& event : timeline.events) {
    const Track& track = timeline.tracks[event.track];
    if (track.stage != Stage::stream || track.device != 1 || event.kind == Kind::barrier) {
      continue;
    }
    const std::string row = std::string(timeline::name(event.kind)) + "," +
                            std::to_string(event.begin_ns) + "," + std::to_string(event.end_ns) +
                            ",";
    const std::size_t at = table.find(row);
    ASSERT_NE(at, std::string::npos) << row << " in\n" << table;
    const std::string line = table.substr(at, table.find('\n', at) - at);
    EXPECT_NE(line.find("iteration: the only iteration"), std::string::npos) << line;
    ++kernels;
  }
  EXPECT_GT(kernels, 4);
  std::filesystem::remove_all(folder);
}
INSTANTIATE_TEST_SUITE_P(Tools, PublicReader, testing::Values("nsys-tui", "nsys-ai"),
                         [](const auto& tool) {
                           return std::string(tool.param) == "nsys-ai" ? "nsys_ai" : "nsys_tui";
                         });

}  // namespace
}  // namespace fusescope::timeline::test
