// The corpora as ordinary tests: seeds, and what the fuzzers found on the way.

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "targets.hpp"

namespace fusescope::fuzz {
namespace {

void replay(const std::string& corpus, bool (*target)(std::string_view)) {
  const std::filesystem::path folder =
      std::filesystem::path(FUSESCOPE_TEST_SOURCE_DIR) / "tests/fuzz/corpus" / corpus;
  int accepted = 0;
  int refused = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    std::ifstream file(entry.path(), std::ios::binary);
    const std::string bytes{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
    bool taken = false;
    EXPECT_NO_THROW(taken = target(bytes)) << entry.path();
    ++(taken ? accepted : refused);
  }
  EXPECT_GT(accepted, 0) << "no seed of " << folder << " is good";
  EXPECT_GT(refused, 0) << "no seed of " << folder << " is bad";
}

TEST(Corpus, SweepJson) {
  replay("sweep_json", sweep_json);
}
TEST(Corpus, RoutingFile) {
  replay("routing_file", routing_file);
}
TEST(Corpus, TrialLog) {
  replay("trial_log", trial_log);
}
TEST(Corpus, StoredTimeline) {
  replay("stored_timeline", stored_timeline);
}
TEST(Corpus, ScheduleText) {
  replay("schedule_text", schedule_text);
}

}  // namespace
}  // namespace fusescope::fuzz
