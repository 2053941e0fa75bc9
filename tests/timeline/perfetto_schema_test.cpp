// Perfetto's own, published message definitions decode what the writer writes: tests of this folder that
// read field numbers from a table of ours could share its mistakes.

#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <filesystem>
#include <string>

#include "timeline/writers.hpp"
#include "tiny_layer.hpp"

namespace fusescope::timeline {
namespace {

struct Outcome {
  int code = -1;
  std::string text;
};

Outcome check_with(const std::string& argument) {
  const std::string command = std::string("python3 ") + FUSESCOPE_TEST_SOURCE_DIR +
                              "/tests/timeline/perfetto_schema_check.py " + argument + " 2>&1";
  Outcome outcome;
  std::FILE* pipe = popen(command.c_str(), "r");
  if (pipe == nullptr) {
    return outcome;
  }
  std::array<char, 4096> piece;
  for (std::size_t size = 0; (size = std::fread(piece.data(), 1, piece.size(), pipe)) > 0;) {
    outcome.text.append(piece.data(), size);
  }
  outcome.code = pclose(pipe);
  return outcome;
}

TEST(PerfettoSchema, DecodesWithPublishedDefinitions) {
  if (const Outcome available = check_with("--available"); available.code != 0) {
    GTEST_SKIP() << available.text << "(python3 -m pip install perfetto protobuf)";
  }
  Timeline timeline = tiny_layer();
  timeline.counters.push_back({"tensor pipe active", "%", 0, {0, 10, 20}, {0, 12.5, 3}});
  std::string pattern =
      (std::filesystem::temp_directory_path() / "fusescope-perfetto-XXXXXX").string();
  const std::filesystem::path folder = ::mkdtemp(pattern.data());
  const std::string file = (folder / "tiny.pftrace").string();
  write_timeline(timeline, file, find_format("perfetto"));
  const Outcome outcome = check_with(file);
  EXPECT_EQ(outcome.code, 0) << outcome.text;
  std::size_t samples = 0;
  for (const Counter& counter : timeline.counters) {
    samples += counter.value.size();
  }
  // One slice more: what was run.
  const std::string found = std::to_string(timeline.events.size() + 1) + " slices, " +
                            std::to_string(samples) + " samples";
  EXPECT_NE(outcome.text.find(found), std::string::npos) << outcome.text;
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace fusescope::timeline
