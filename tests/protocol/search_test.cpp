// What can be relied on in a search.
#include "protocol/search.hpp"

#include <gtest/gtest.h>

namespace fusescope::protocol {
namespace {

SearchOptions options_of(std::int64_t schedules, std::uint64_t seed, Bug bug = Bug::none) {
  SearchOptions options;
  options.schedules = schedules;
  options.seed = seed;
  options.bug = bug;
  return options;
}

TEST(Search, IsTheSameOnAnyNumberOfThreads) {
  SearchOptions options = options_of(500, 9, Bug::jobs_before_gemm_resident);
  options.threads = 1;
  const SearchResult alone = search(options);
  options.threads = 4;
  const SearchResult together = search(options);
  ASSERT_TRUE(alone.found && together.found);
  EXPECT_EQ(alone.found->index, together.found->index);
  EXPECT_EQ(to_string(alone.found->schedule), to_string(together.found->schedule));
  EXPECT_EQ(alone.found->finding.what, together.found->finding.what);
  EXPECT_EQ(alone.schedules, together.schedules);
  EXPECT_EQ(alone.steps, together.steps);
  EXPECT_EQ(alone.faults, together.faults);
  EXPECT_EQ(alone.aborted, together.aborted);
}

// What orders a push into a peer's memory behind the peer's reads of the last iteration is one chain of edges, through
// all ranks' watermarks; without it the rows themselves are a race.
TEST(Search, PushesOfTheNextIterationRaceWithReads) {
  for (std::uint64_t seed = 1; seed <= 3; ++seed) {
    const SearchResult result = search(options_of(2'000, seed, Bug::tokens_pushed_beside_reduce));
    ASSERT_TRUE(result.found) << seed;
    const Finding& finding = result.found->finding;
    EXPECT_EQ(finding.kind, FindingKind::race);
    EXPECT_EQ(finding.what.rfind("all_tokens", 0), 0u) << finding.what;
    EXPECT_GT(result.found->schedule.scenario.iterations, 1);
    EXPECT_GT(result.found->schedule.scenario.devices, 1);
  }
}

TEST(Search, StopsWhenItIsTold) {
  const std::atomic<bool> stop = true;
  const SearchResult result = search(options_of(1'000'000, 1), {}, &stop);
  EXPECT_TRUE(result.interrupted);
  EXPECT_EQ(result.schedules, 0);
}

}  // namespace
}  // namespace fusescope::protocol
