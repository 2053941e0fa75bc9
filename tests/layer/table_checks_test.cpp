// Every class of fault, planted, is found by the table's name, the index and both values.
#include "layer/table_checks.hpp"

#include <algorithm>

#include "layer_test_support.hpp"

namespace fusescope {
namespace {

using test::contains;

class PlantedFault : public testing::Test {
 protected:
  PlantedFault()
      : problem_(make_problem(test::small_shape(2, 100, 5, 2), parse_routing("zipf:1"))),
        tables_(build_tables_golden(problem_.shape, problem_.routing, SlotOrder::by_token, 0)) {}

  void SetUp() override { ASSERT_FALSE(check_tables(tables_, problem_.shape, problem_.routing)); }

  // The fault of the tables as they stand now.
  TableFault fault() const {
    const auto found = check_tables(tables_, problem_.shape, problem_.routing);
    EXPECT_TRUE(found) << "the planted fault was not found";
    return found.value_or(TableFault{});
  }

  Problem problem_;
  ScheduleTables tables_;
};

TEST_F(PlantedFault, ExpertRowsOfTheWrongLength) {
  tables_.expert_rows.pop_back();
  EXPECT_EQ(fault().table, "expert_rows");
  EXPECT_EQ(fault().expected, "6 entries");
  EXPECT_EQ(fault().found, "5 entries");
}

TEST_F(PlantedFault, ExpertRowsThatDoNotStartAtZero) {
  tables_.expert_rows[0] = 128;
  EXPECT_EQ(fault().table, "expert_rows");
  EXPECT_EQ(fault().index, 0);
  EXPECT_EQ(fault().found, "128");
}

TEST_F(PlantedFault, ExpertRowsThatAreNoMultipleOf128) {
  tables_.expert_rows[2] += 1;
  EXPECT_EQ(fault().table, "expert_rows");
  EXPECT_EQ(fault().index, 2);
}

TEST_F(PlantedFault, ExpertRowsWithABlockTooMany) {
  tables_.expert_rows[3] += 128;
  EXPECT_EQ(fault().index, 3);
  EXPECT_EQ(fault().found, std::to_string(tables_.expert_rows[3]));
  EXPECT_TRUE(contains(fault().expected, "expert 2 has")) << fault().expected;
}

TEST_F(PlantedFault, SlotsOfTheWrongLength) {
  tables_.slots.push_back(0);
  EXPECT_EQ(fault().table, "slots");
}

TEST_F(PlantedFault, TwoHitsOnOneSlot) {
  // Two hits of one expert.
  std::size_t other = 1;
  while (problem_.routing.experts[other] != problem_.routing.experts[0]) {
    ++other;
  }
  tables_.slots[other] = tables_.slots[0];
  EXPECT_EQ(fault().table, "slots");
  EXPECT_EQ(fault().index, static_cast<long long>(other));
  EXPECT_TRUE(contains(fault().found, "hit 0 has already")) << fault().found;
}

TEST_F(PlantedFault, SlotInAnotherExpertsRows) {
  std::size_t other = 1;
  while (problem_.routing.experts[other] == problem_.routing.experts[0]) {
    ++other;
  }
  std::swap(tables_.slots[0], tables_.slots[other]);
  EXPECT_EQ(fault().table, "slots");
  EXPECT_EQ(fault().index, 0);
  EXPECT_TRUE(contains(fault().expected, "a row of expert")) << fault().expected;
}

TEST_F(PlantedFault, SlotInThePadding) {
  const std::int32_t expert = problem_.routing.experts[0];
  tables_.slots[0] = tables_.expert_rows[expert + 1] - 1;
  EXPECT_EQ(fault().table, "slots");
  EXPECT_EQ(fault().index, 0);
  EXPECT_EQ(fault().found, std::to_string(tables_.slots[0]));
}

TEST_F(PlantedFault, SlotOutsideTheBuffer) {
  for (const std::int32_t slot : {-1, 1 << 30}) {
    tables_.slots[4] = slot;
    EXPECT_EQ(fault().table, "slots");
    EXPECT_EQ(fault().index, 4);
    EXPECT_EQ(fault().found, std::to_string(slot));
  }
}

TEST_F(PlantedFault, SlackOfTheWrongLength) {
  tables_.slack.pop_back();
  EXPECT_EQ(fault().table, "slack");
}

TEST_F(PlantedFault, SlackThatNeverOpensTheBlock) {
  const std::int32_t right = tables_.slack[1]--;
  EXPECT_EQ(fault().table, "slack");
  EXPECT_EQ(fault().index, 1);
  EXPECT_TRUE(contains(fault().expected, std::to_string(right) + ": ")) << fault().expected;
  EXPECT_TRUE(contains(fault().expected, "arrivals + slack = 128")) << fault().expected;
  EXPECT_EQ(fault().found, std::to_string(right - 1));
}

TEST_F(PlantedFault, TokenOfSlotOfTheWrongLength) {
  tables_.token_of_slot.pop_back();
  EXPECT_EQ(fault().table, "token_of_slot");
}

TEST_F(PlantedFault, SlotThatNamesAnotherToken) {
  const std::int32_t slot = tables_.slots[0];
  tables_.token_of_slot[slot] = 7;
  EXPECT_EQ(fault().table, "token_of_slot");
  EXPECT_EQ(fault().index, slot);
  EXPECT_EQ(fault().expected, "0, whose hit it is");
  EXPECT_EQ(fault().found, "7");
}

TEST_F(PlantedFault, PaddingThatNamesNoRanksFirstToken) {
  const auto last = static_cast<std::size_t>(tables_.rows()) - 1;
  ASSERT_GT(tables_.slack.back(), 1);
  for (const std::int32_t token : {-1, 1, 100, 200}) {
    tables_.token_of_slot[last] = token;
    EXPECT_EQ(fault().table, "token_of_slot");
    EXPECT_EQ(fault().index, static_cast<long long>(last));
    EXPECT_EQ(fault().found, std::to_string(token));
  }
}

TEST_F(PlantedFault, OrdersThatAreNoPermutation) {
  for (const bool pull : {true, false}) {
    ScheduleTables good = tables_;
    std::vector<std::int32_t>& order = pull ? tables_.pull_order : tables_.job_order;
    const std::string name = pull ? "pull_order" : "job_order";
    order[7] = order[6];
    EXPECT_EQ(fault().table, name);
    EXPECT_EQ(fault().index, 7);
    EXPECT_TRUE(contains(fault().found, "is at 6 already")) << fault().found;
    order[7] = 200;
    EXPECT_EQ(fault().index, 7);
    EXPECT_EQ(fault().found, "200");
    order[7] = -1;
    EXPECT_EQ(fault().found, "-1");
    order.pop_back();
    EXPECT_EQ(fault().table, name);
    EXPECT_EQ(fault().index, -1);
    tables_ = good;
  }
}

TEST_F(PlantedFault, OrdersThatAreNotSortedByTheirKey) {
  std::swap(tables_.pull_order[10], tables_.pull_order[11]);
  EXPECT_EQ(fault().table, "pull_order");
  EXPECT_EQ(fault().index, 11);
  EXPECT_TRUE(contains(fault().expected, "smallest slot above")) << fault().expected;
  std::swap(tables_.pull_order[10], tables_.pull_order[11]);
  std::swap(tables_.job_order[0], tables_.job_order[199]);
  EXPECT_EQ(fault().table, "job_order");
  EXPECT_TRUE(contains(fault().expected, "largest slot above")) << fault().expected;
}

TEST_F(PlantedFault, OfADifferenceTheFirstElementIsNamed) {
  ScheduleTables other = tables_;
  EXPECT_FALSE(compare_tables(tables_, other));
  other.job_order[5] = 99999;
  const auto difference = compare_tables(tables_, other);
  ASSERT_TRUE(difference);
  EXPECT_EQ(to_string(*difference),
            "job_order[5]: expected " + std::to_string(tables_.job_order[5]) + "; found 99999");
  other.slack.push_back(0);
  EXPECT_EQ(compare_tables(tables_, other)->table, "slack");
}

}  // namespace
}  // namespace fusescope
