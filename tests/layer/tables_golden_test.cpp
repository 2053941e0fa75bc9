// The golden tables against tables worked out by hand.
#include "layer/tables.hpp"
#include "layer_test_support.hpp"

namespace fusescope {
namespace {

using Table = std::vector<std::int32_t>;

// 2 ranks, 2 tokens each, 3 experts, top-2. Expert 1 is hit by tokens 0, 1, 3; expert 2 by none but 2;
// expert 0 by all.
Routing worked_routing() {
  Routing routing;
  routing.tokens = 4;
  routing.topk = 2;
  routing.experts = {0, 1, /**/ 1, 0, /**/ 2, 0, /**/ 0, 1};
  routing.weights.assign(8, 0.5f);
  return routing;
}

Shape worked_shape() {
  return test::small_shape(2, 2, 3, 2);
}

TEST(GoldenTables, ByToken) {
  const ScheduleTables tables =
      build_tables_golden(worked_shape(), worked_routing(), SlotOrder::by_token, 0);
  EXPECT_EQ(tables.expert_rows, (Table{0, 128, 256, 384}));
  EXPECT_EQ(tables.slots, (Table{0, 128, /**/ 129, 1, /**/ 256, 2, /**/ 3, 130}));
  EXPECT_EQ(tables.slack, (Table{124, 125, 127}));
  EXPECT_EQ(tables.pull_order, (Table{0, 1, 2, 3}));
  EXPECT_EQ(tables.job_order, (Table{0, 1, 3, 2}));
  EXPECT_EQ(tables.row_blocks(), 3);
  EXPECT_EQ(tables.rows(), 384);
  Table tokens(384, 0);  // padding names rank 0's first token
  tokens[1] = 1;
  tokens[2] = 2;
  tokens[3] = 3;
  tokens[129] = 1;
  tokens[130] = 3;
  tokens[256] = 2;
  EXPECT_EQ(tables.token_of_slot, tokens);
  EXPECT_EQ(experts_of_row_blocks(tables), (Table{0, 1, 2}));
}

TEST(GoldenTables, InterleaveSources) {
  // Tokens lie as 0 (rank 0, first), 2 (rank 1, first), 1, 3.
  const ScheduleTables tables =
      build_tables_golden(worked_shape(), worked_routing(), SlotOrder::interleave_sources, 0);
  EXPECT_EQ(tables.slots, (Table{0, 128, /**/ 129, 2, /**/ 256, 1, /**/ 3, 130}));
  EXPECT_EQ(tables.pull_order, (Table{0, 2, 1, 3}));
  EXPECT_EQ(tables.job_order, (Table{0, 1, 3, 2}));
}

TEST(GoldenTables, RotateFromSelf) {
  // Rank 1's tokens lie first on rank 1: 2, 3, 0, 1.
  const ScheduleTables tables =
      build_tables_golden(worked_shape(), worked_routing(), SlotOrder::rotate_from_self, 1);
  EXPECT_EQ(tables.slots, (Table{2, 129, /**/ 130, 3, /**/ 256, 0, /**/ 1, 128}));
  EXPECT_EQ(Table(tables.token_of_slot.begin(), tables.token_of_slot.begin() + 6),
            (Table{2, 3, 0, 1, 2, 2}))
      << "padding names rank 1's first token";
  EXPECT_EQ(tables.pull_order, (Table{2, 3, 0, 1}));
  EXPECT_EQ(tables.job_order, (Table{3, 0, 1, 2}));
  EXPECT_EQ(build_tables_golden(worked_shape(), worked_routing(), SlotOrder::rotate_from_self, 0),
            build_tables_golden(worked_shape(), worked_routing(), SlotOrder::by_token, 0));
}

TEST(GoldenTables, AFullBlockHasNoSlackAndAnEmptyExpertNoRows) {
  const Shape shape = test::small_shape(1, 129, 3, 1);
  Routing routing;
  routing.tokens = 129;
  routing.topk = 1;
  routing.experts.assign(129, 2);
  routing.weights.assign(129, 1.0f);
  const ScheduleTables tables = build_tables_golden(shape, routing, SlotOrder::by_token, 0);
  EXPECT_EQ(tables.expert_rows, (Table{0, 0, 0, 256}));
  EXPECT_EQ(tables.slack, (Table{0, 127}));
  EXPECT_EQ(experts_of_row_blocks(tables), (Table{2, 2}));
}

TEST(GoldenTables, TheSeedsBalancedRoutingFillsEveryBlock) {
  const Shape shape = load_shape("seed-tp4");
  const Routing routing = make_routing(parse_routing("balanced"), shape);
  const ScheduleTables tables = build_tables_golden(shape, routing, SlotOrder::by_token, 0);
  EXPECT_EQ(tables.rows(), 16384);
  EXPECT_EQ(tables.slack, Table(128, 0));
}

}  // namespace
}  // namespace fusescope
