// Every planted bug is found within a budget; its schedule replays, and becomes small.
#include <gtest/gtest.h>

#include <algorithm>

#include "protocol/minimise.hpp"
#include "protocol/search.hpp"

namespace fusescope::protocol {
namespace {

struct PlantedIn {
  Subject subject;
  BugEntry entry;
};
class Planted : public testing::TestWithParam<PlantedIn> {};

// Steps at which the thread that ran does not go on.
std::ptrdiff_t switches(const Schedule& schedule) {
  return std::count_if(schedule.choices.begin(), schedule.choices.end(),
                       [](std::uint16_t choice) { return choice != 0; });
}

TEST_P(Planted, IsFound) {
  SearchOptions options;
  options.schedules = 20'000;
  options.subject = GetParam().subject;
  options.bug = GetParam().entry.bug;
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
  // Its steps may be more: those of a smaller scenario have nothing to do with the larger one's.
  EXPECT_LE(switches(small.schedule), switches(found.schedule));
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

std::vector<PlantedIn> harmful() {
  std::vector<PlantedIn> list;
  for (const Subject subject : {Subject::layer, Subject::gemm_reduce_scatter}) {
    for (const BugEntry& entry : bugs()) {
      if (effect_on(entry, subject) == Effect::found) {
        list.push_back({subject, entry});
      }
    }
  }
  return list;
}

INSTANTIATE_TEST_SUITE_P(Bugs, Planted, testing::ValuesIn(harmful()), [](const auto& planted) {
  return std::string(planted.param.entry.name) + "_in_" + to_string(planted.param.subject);
});

TEST(Bugs, HaveNamesOfTheirOwn) {
  for (const BugEntry& entry : bugs()) {
    EXPECT_EQ(parse_bug(std::string(entry.name), "--bug"), entry.bug);
    EXPECT_EQ(name(entry.bug), entry.name);
  }
}

}  // namespace
}  // namespace fusescope::protocol
