// The unmodified protocol under many schedules: as many as make silence mean something.
#include <gtest/gtest.h>

#include <array>

#include "protocol/search.hpp"

namespace fusescope::protocol {
namespace {

SearchOptions options_of(std::int64_t schedules, std::uint64_t seed) {
  SearchOptions options;
  options.schedules = schedules;
  options.seed = seed;
  return options;
}

class Unmodified : public testing::TestWithParam<int> {};

TEST_P(Unmodified, NothingIsFound) {
  const SearchResult result = search(options_of(25'000, static_cast<std::uint64_t>(GetParam())));
  EXPECT_EQ(result.schedules, 25'000);
  ASSERT_FALSE(result.found) << to_string(result.found->schedule) << "\n"
                             << result.found->finding.what;
  for (int ranks = 1; ranks <= 4; ++ranks) {
    EXPECT_GT(result.by_ranks[ranks], 5'000) << ranks;
  }
  for (const std::int64_t schedules : result.by_strategy) {
    EXPECT_GT(schedules, 3'000);
  }
  EXPECT_GT(result.faults, 2'500);
  EXPECT_GT(result.aborted, 2'000);
}

INSTANTIATE_TEST_SUITE_P(Seeds, Unmodified, testing::Range(1, 5));

// Evidence that these steps are implied by others, within the sizes that are searched.
TEST(Search, ImpliedStepsAreNotMissed) {
  for (const Subject subject : {Subject::layer, Subject::gemm_reduce_scatter}) {
    for (const BugEntry& entry : bugs()) {
      if (effect_on(entry, subject) == Effect::implied) {
        SearchOptions options = options_of(4'000, 1);
        options.bug = entry.bug;
        options.subject = subject;
        EXPECT_FALSE(search(options).found) << entry.name << " in " << to_string(subject);
      }
    }
  }
}

TEST(Search, NothingIsFoundInTheThirdKernel) {
  SearchOptions options = options_of(20'000, 1);
  options.subject = Subject::gemm_reduce_scatter;
  const SearchResult result = search(options);
  EXPECT_EQ(result.schedules, 20'000);
  EXPECT_FALSE(result.found) << to_string(result.found->schedule) << "\n"
                             << result.found->finding.what;
}

// Every kind of fault: what is left ends, and the launch that follows is right.
TEST(Search, FaultsEndInAnAbort) {
  std::array<int, 14> aborted{};
  Machine machine;
  for (std::uint64_t i = 0; i < 12000; ++i) {
    const Scenario s = draw_scenario(Subject::layer, {}, 4, i);
    StrategyChooser chooser(target_of(s), 4, i);
    const Outcome outcome = run_schedule(machine, s, Bug::none, chooser);
    ASSERT_FALSE(outcome.finding) << outcome.finding->what;
    aborted[static_cast<std::size_t>(s.fault)] += outcome.aborted ? 1 : 0;
  }
  EXPECT_EQ(aborted[0], 0);
  for (std::size_t fault = 1; fault < aborted.size(); ++fault) {
    EXPECT_GT(aborted[fault], 10) << to_string(static_cast<Fault>(fault));
  }
}

}  // namespace
}  // namespace fusescope::protocol
