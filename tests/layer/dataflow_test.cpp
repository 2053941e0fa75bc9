// The dataflow check passes on real tables and fails on each kind of wrong one.
#include "layer/dataflow.hpp"

#include <cmath>

#include "layer/reference.hpp"
#include "layer_test_support.hpp"

namespace fusescope {
namespace {

using test::contains;

constexpr DataflowSize kSize{32, 16};

TEST(Reference, IsTheDefinition) {
  // One token, two experts, written out.
  const Problem problem = make_problem(test::small_shape(1, 1, 2, 2), parse_routing("uniform"));
  const LayerValues values{1, 8, 8};
  const std::vector<double> out = reference_layer(problem, values);
  ASSERT_EQ(out.size(), 8u);
  for (int h = 0; h < 8; ++h) {
    double expected = 0;
    for (int k = 0; k < 2; ++k) {
      const int e = problem.routing.experts[k];
      double sum = 0;
      for (int i = 0; i < 8; ++i) {
        double gate = 0;
        double up = 0;
        for (int c = 0; c < 8; ++c) {
          gate += static_cast<double>(values.gate(e, i, c)) * values.input(0, c);
          up += static_cast<double>(values.up(e, i, c)) * values.input(0, c);
        }
        sum += values.down(e, h, i) * (gate / (1 + std::exp(-gate)) * up);
      }
      expected += problem.routing.weights[k] * sum;
    }
    EXPECT_NEAR(out[h], expected, 1e-12);
    EXPECT_NE(out[h], 0.0);
  }
}

TEST(Reference, ValuesAreOfTheSameSizeEverywhere) {
  const LayerValues values{1, 64, 64};
  double square = 0;
  for (int i = 0; i < 10000; ++i) {
    square += std::pow(values.input(i / 64, i % 64), 2);
    EXPECT_LT(std::abs(values.input(i / 64, i % 64)), 1.0f);
  }
  EXPECT_NEAR(square / 10000, 1.0 / 3, 0.02);
  EXPECT_NE(values.gate(1, 2, 3), values.up(1, 2, 3));
  EXPECT_NE(values.gate(1, 2, 3), values.gate(1, 3, 2));
  EXPECT_NE(values.gate(1, 2, 3), values.gate(2, 2, 3));
}

TEST(Dataflow, AgreesWithTheReferenceInFp32) {
  for (const char* routing : {"balanced", "zipf:1.2", "hot:1,0.5"}) {
    const Problem problem = make_problem(test::small_shape(3, 37, 9, 3), parse_routing(routing));
    for (const SlotOrder order :
         {SlotOrder::by_token, SlotOrder::interleave_sources, SlotOrder::rotate_from_self}) {
      Config config;
      config.slot_order = order;
      const DataflowResult result = check_dataflow(problem, config, kSize);
      EXPECT_TRUE(result.passed()) << result.fault;
      EXPECT_GT(result.max_error, 0);
      EXPECT_LT(result.max_error, 1e-6);
      EXPECT_LT(result.frobenius_error, 1e-6);
    }
  }
}

TEST(Dataflow, HoldsForTheOtherKnobsToo) {
  const Problem problem = make_problem(test::small_shape(2, 25, 4, 2), parse_routing("uniform"));
  Config config;
  config.pull_order = PullOrder::by_token;
  config.job_order = JobOrder::by_token;
  for (const int chunks : {1, 2, 7, 25}) {
    config.watermark_chunks = chunks;
    const DataflowResult result = check_dataflow(problem, config, kSize);
    EXPECT_TRUE(result.passed()) << result.fault;
  }
}

TEST(Dataflow, RefusesChunksThatNoPlaneHas) {
  const Problem problem = make_problem(test::small_shape(2, 25, 4, 2), parse_routing("uniform"));
  Config config;
  for (const int chunks : {0, -1, 26}) {
    config.watermark_chunks = chunks;
    EXPECT_THROW(check_dataflow(problem, config, kSize), InputError);
  }
}

TEST(Dataflow, ResultsDoNotDependOnTheOrders) {
  const Problem problem = make_problem(test::small_shape(2, 64, 4, 2), parse_routing("uniform"));
  Config config;
  const double first = check_dataflow(problem, config, kSize).frobenius_error;
  config.pull_order = PullOrder::by_token;
  config.job_order = JobOrder::by_token;
  config.slot_order = SlotOrder::interleave_sources;
  EXPECT_EQ(check_dataflow(problem, config, kSize).frobenius_error, first);
}

class WrongTables : public testing::Test {
 protected:
  WrongTables()
      : problem_(make_problem(test::small_shape(2, 60, 4, 2), parse_routing("uniform"))),
        reference_(reference_layer(problem_, dataflow_values(problem_, kSize))) {
    for (int rank = 0; rank < 2; ++rank) {
      tables_.push_back(
          build_tables_golden(problem_.shape, problem_.routing, SlotOrder::by_token, rank));
    }
  }
  std::string fault() const {
    const DataflowResult result = check_dataflow(problem_, config_, tables_, reference_, kSize);
    EXPECT_FALSE(result.passed());
    return result.fault;
  }
  Problem problem_;
  Config config_;
  std::vector<double> reference_;
  std::vector<ScheduleTables> tables_;
};

TEST_F(WrongTables, PassWhenTheyAreRight) {
  EXPECT_TRUE(check_dataflow(problem_, config_, tables_, reference_, kSize).passed());
}

TEST_F(WrongTables, TwoSlotsSwapped) {
  // The expert of a hit becomes another one; scatter and gather agree, so only the values tell.
  std::size_t other = 2;
  while (problem_.routing.experts[other] == problem_.routing.experts[0]) {
    ++other;
  }
  std::swap(tables_[1].slots[0], tables_[1].slots[other]);
  EXPECT_TRUE(contains(fault(), "relative error")) << fault();
}

TEST_F(WrongTables, ASlotTakenTwice) {
  tables_[0].slots[0] = tables_[0].slots[3];
  EXPECT_FALSE(fault().empty());
}

TEST_F(WrongTables, ASlotInThePaddingOfAnotherBlock) {
  const std::int32_t block = tables_[0].slots[0] / kRowBlock;
  tables_[0].slots[0] = block == 0 ? tables_[0].rows() - 1 : kRowBlock - 1;
  EXPECT_TRUE(contains(fault(), "arrivals")) << fault();
}

TEST_F(WrongTables, ASlotOutsideTheBuffer) {
  tables_[1].slots[5] = tables_[1].rows();
  EXPECT_TRUE(contains(fault(), "outside")) << fault();
}

TEST_F(WrongTables, SlackThatIsOff) {
  --tables_[0].slack[1];
  EXPECT_TRUE(contains(fault(), "row block 1 stands at 127 arrivals")) << fault();
}

TEST_F(WrongTables, ATokenPulledTwice) {
  tables_[0].pull_order[3] = tables_[0].pull_order[4];
  EXPECT_TRUE(contains(fault(), "arrivals")) << fault();
}

TEST_F(WrongTables, AJobClaimedTwice) {
  tables_[1].job_order[0] = tables_[1].job_order[119];
  EXPECT_FALSE(fault().empty());
}

TEST_F(WrongTables, AJobClaimedTwiceFromTheSameRank) {
  // The count is right, so the watermark rises; the row that nobody pushed is still poison.
  std::vector<std::int32_t>& order = tables_[1].job_order;
  std::size_t first = 0;
  while (problem_.shape.source_rank(order[first]) != 0) {
    ++first;
  }
  std::size_t second = first + 1;
  while (problem_.shape.source_rank(order[second]) != 0) {
    ++second;
  }
  order[first] = order[second];
  EXPECT_TRUE(contains(fault(), "NaN")) << fault();
}

TEST_F(WrongTables, AnOrderThatNamesNoToken) {
  tables_[0].job_order[9] = 120;
  EXPECT_TRUE(contains(fault(), "job_order names token 120")) << fault();
  tables_[0].pull_order[9] = -1;
  EXPECT_TRUE(contains(fault(), "pull_order names token -1")) << fault();
}

TEST_F(WrongTables, ExpertRowsThatAreOff) {
  tables_[0].expert_rows[1] += kRowBlock;
  EXPECT_FALSE(fault().empty());
  tables_[0].expert_rows[1] += 1;
  EXPECT_TRUE(contains(fault(), "expert_rows[1]")) << fault();
}

TEST_F(WrongTables, TheTablesOfAnotherRouting) {
  const Problem other = make_problem(problem_.shape, parse_routing("uniform@2"));
  tables_[0] = build_tables_golden(other.shape, other.routing, SlotOrder::by_token, 0);
  EXPECT_FALSE(fault().empty());
}

}  // namespace
}  // namespace fusescope
