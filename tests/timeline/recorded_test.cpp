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
  // The prologue has no barriers, and copies in beside its schedule build.
  if (timeline.meta.config.find("schedule=fused") == std::string::npos) {
    EXPECT_GT(counts[static_cast<std::size_t>(Kind::barrier)], 0);
    EXPECT_GT(counts[static_cast<std::size_t>(Kind::copy_in)], 0);
  }
  for (const Kind kind :
       {Kind::ids_exchange, Kind::schedule_build, Kind::dispatch_gemm, Kind::gemm_combine_push,
        Kind::final_reduce, Kind::pull, Kind::scatter, Kind::arrive, Kind::mainloop, Kind::epilogue,
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

// The pushes' edges from the hardware's side: no push of a warpgroup is issued before the push two jobs before
// it has been counted, and no sum by threads that also claim begins before that.
class RecordedPushes : public testing::TestWithParam<const char*> {};

TEST_P(RecordedPushes, AndSumsWaitForThePushTwoJobsBefore) {
  const Timeline timeline = load_timeline(std::string(FUSESCOPE_TEST_SOURCE_DIR) +
                                          "/reports/h200-x2-timelines/" + GetParam());
  const Dependencies dependencies(timeline);
  constexpr std::int64_t kTimerStep = 32;  // [ns]
  int waited = 0;
  for (std::uint32_t track = 0; track < timeline.tracks.size(); ++track) {
    std::vector<Dependencies::EventId> jobs;
    bool claims = false;
    const Dependencies::Range range = dependencies.events_of_track(track);
    for (Dependencies::EventId id = range.first; id < range.last; ++id) {
      claims = claims || timeline.events[id].kind == Kind::claim;
      if (timeline.events[id].kind == Kind::sum) {
        jobs.push_back(id);
      }
    }
    const int rank = timeline.tracks[track].rank;
    for (std::size_t job = 2; job < jobs.size(); ++job) {
      const Event& sum = timeline.events[jobs[job]];
      const auto counted =
          dependencies.of_token(rank, Kind::elect, timeline.events[jobs[job - 2]].token);
      const auto push = dependencies.of_token(rank, Kind::push, sum.token);
      ASSERT_NE(counted, Dependencies::kNone);
      ASSERT_NE(push, Dependencies::kNone);
      const std::int64_t end = timeline.events[counted].end_ns;
      EXPECT_LE(end, timeline.events[push].begin_ns + kTimerStep);
      if (claims) {
        EXPECT_LE(end, sum.begin_ns + kTimerStep);
        const auto previous = dependencies.previous_on_track(jobs[job]);
        ASSERT_NE(previous, Dependencies::kNone);
        EXPECT_GE(timeline.events[previous].end_ns, std::min(end, sum.begin_ns));
      }
      for (const auto id : {jobs[job], push}) {
        const auto previous = dependencies.previous_on_track(id);
        const Kind kind =
            previous == Dependencies::kNone ? Kind::sum : timeline.events[previous].kind;
        waited += kind == Kind::elect || kind == Kind::watermark ? 1 : 0;
      }
    }
  }
  EXPECT_GT(waited, 0);
}

// The recorded layer of the tests gives no warpgroup three jobs.
INSTANTIATE_TEST_SUITE_P(Files, RecordedPushes,
                         testing::Values("fetch-first.fst", "split/timeline.fst", "best.fst"));

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
