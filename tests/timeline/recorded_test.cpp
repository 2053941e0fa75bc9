// Timelines that real GPUs recorded: they hold to the event contract, their analysis adds up, and they
// come through the store and the writers.

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <filesystem>
#include <numeric>
#include <string>
#include <vector>

#include "analysis/accounting.hpp"
#include "analysis/summary.hpp"
#include "timeline/dependencies.hpp"
#include "timeline/store.hpp"

namespace fusescope::timeline {
namespace {

std::vector<std::string> recorded_files() {
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(
           std::string(FUSESCOPE_TEST_SOURCE_DIR) + "/tests/timeline/recorded")) {
    if (entry.path().extension() == ".fst") {
      files.push_back(entry.path().string());
    }
  }
  std::sort(files.begin(), files.end());
  return files;
}

class RecordedTimeline : public testing::TestWithParam<std::string> {
 protected:
  const Timeline timeline = load_timeline(GetParam());
};

TEST_P(RecordedTimeline, IsMeasuredAndWhole) {
  EXPECT_EQ(timeline.meta.provenance, Provenance::measured);
  EXPECT_EQ(timeline.meta.dropped, 0U);
  EXPECT_GT(timeline.meta.recorded_us, 0);
  EXPECT_GT(timeline.meta.unrecorded_us, 0);
  EXPECT_FALSE(timeline.meta.chosen.empty());
  EXPECT_FALSE(timeline.meta.clocks.empty());
  EXPECT_EQ(check(timeline), "");
}

TEST_P(RecordedTimeline, HasEveryKindOfEventThatIsNeverLeftOut) {
  std::array<int, kKinds> counts{};
  for (const Event& event : timeline.events) {
    ++counts[static_cast<std::size_t>(event.kind)];
  }
  for (const Kind kind : {Kind::ids_exchange, Kind::schedule_build, Kind::barrier, Kind::copy_in,
                          Kind::dispatch_gemm, Kind::gemm_combine_push, Kind::final_reduce,
                          Kind::pull, Kind::scatter, Kind::arrive, Kind::mainloop, Kind::epilogue,
                          Kind::sum, Kind::push, Kind::elect, Kind::watermark, Kind::reduce}) {
    EXPECT_GT(counts[static_cast<std::size_t>(kind)], 0) << name(kind);
  }
  const int tokens = timeline.wiring.ranks * timeline.wiring.tokens_per_rank;
  EXPECT_EQ(counts[static_cast<std::size_t>(Kind::pull)], tokens * timeline.wiring.ranks);
  EXPECT_EQ(counts[static_cast<std::size_t>(Kind::push)], tokens * timeline.wiring.ranks);
}

TEST_P(RecordedTimeline, IsAttributedToTheNanosecond) {
  const analysis::Attribution attribution = analysis::attribute(timeline);
  EXPECT_EQ(attribution.refusal, "");
  const auto& steps = attribution.path.by_step;
  EXPECT_EQ(std::accumulate(steps.begin(), steps.end(), std::int64_t{0}), timeline.wall_ns());
  for (const analysis::RankAccounting& rank : attribution.accounting.ranks) {
    EXPECT_EQ(rank.area_ns, timeline.wall_ns() * timeline.meta.sms);
    EXPECT_EQ(std::accumulate(rank.by_use.begin(), rank.by_use.end(), std::int64_t{0}),
              rank.area_ns);
  }
}

TEST_P(RecordedTimeline, ComesBackFromTheStore) {
  EXPECT_EQ(decode_timeline(encode_timeline(timeline), "again"), timeline);
}

INSTANTIATE_TEST_SUITE_P(
    Files, RecordedTimeline, testing::ValuesIn(recorded_files()), [](const auto& each) {
      std::string name = std::filesystem::path(each.param).stem().string();
      std::replace_if(
          name.begin(), name.end(),
          [](char c) { return std::isalnum(static_cast<unsigned char>(c)) == 0; }, '_');
      return name;
    });

}  // namespace
}  // namespace fusescope::timeline
