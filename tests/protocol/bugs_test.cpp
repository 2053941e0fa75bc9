// Every planted bug is found within a budget; its schedule replays, and becomes small.
#include <gtest/gtest.h>

#include "protocol/minimise.hpp"
#include "protocol/search.hpp"

namespace fusescope::protocol {
namespace {

class Planted : public testing::TestWithParam<BugEntry> {};

TEST_P(Planted, IsFound) {
  SearchOptions options;
  options.schedules = 20'000;
  options.bug = GetParam().bug;
  const SearchResult result = search(options);
  ASSERT_TRUE(result.found) << "not within " << options.schedules << " schedules";
  const Found& found = *result.found;
  SCOPED_TRACE(to_string(found.schedule));

  Machine machine;
  const Outcome again =
      replay(machine, parse_schedule(to_string(found.schedule), "the printed schedule"));
  ASSERT_TRUE(again.finding);
  EXPECT_EQ(again.finding->what, found.finding.what);
  EXPECT_EQ(again.finding->step, found.finding.step);

  const Minimised small = minimise(found.schedule, found.finding, 100);
  SCOPED_TRACE(to_string(small.schedule));
  EXPECT_EQ(small.finding.kind, found.finding.kind);
  EXPECT_LE(small.schedule.scenario.tokens(), found.schedule.scenario.tokens());
  EXPECT_LE(small.schedule.choices.size(), found.schedule.choices.size());
  std::vector<std::string> trace;
  const Outcome smaller = replay(machine, small.schedule, &trace);
  ASSERT_TRUE(smaller.finding);
  EXPECT_EQ(smaller.finding->what, small.finding.what);
  EXPECT_GE(trace.size(), smaller.steps);

  // The switch is what breaks it.
  Schedule healthy = small.schedule;
  healthy.bug = Bug::none;
  const Outcome without = replay(machine, healthy);
  EXPECT_FALSE(without.finding) << without.finding->what;
}

std::vector<BugEntry> harmful() {
  std::vector<BugEntry> list;
  for (const BugEntry& entry : bugs()) {
    if (!entry.harmless) {
      list.push_back(entry);
    }
  }
  return list;
}

INSTANTIATE_TEST_SUITE_P(Bugs, Planted, testing::ValuesIn(harmful()),
                         [](const auto& planted) { return std::string(planted.param.name); });

TEST(Bugs, HaveNamesOfTheirOwn) {
  for (const BugEntry& entry : bugs()) {
    EXPECT_EQ(parse_bug(std::string(entry.name), "--bug"), entry.bug);
    EXPECT_EQ(name(entry.bug), entry.name);
  }
}

}  // namespace
}  // namespace fusescope::protocol
