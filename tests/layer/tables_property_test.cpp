// Golden = Thrust on C++ = Thrust on OpenMP, and every invariant, on random problems.
#include <algorithm>
#include <iterator>
#include <limits>
#include <string>

#include "base/random.hpp"
#include "layer/table_checks.hpp"
#include "layer/tables.hpp"
#include "layer_test_support.hpp"

namespace fusescope {
namespace {

struct Trial {
  Problem problem;
  SlotOrder slot_order;
  int rank;
};

// Mostly small, with the corners that matter: one expert, K = E, odd T, hot and empty experts.
Trial random_trial(std::uint64_t index) {
  Random random(20260711, index);
  const auto between = [&](int least, int most) {
    return least + static_cast<int>(random.below(most - least + 1));
  };
  const int most_experts = between(0, 3) == 0 ? 512 : 40;
  const int experts = between(0, 15) == 0 ? 1 : between(1, most_experts);
  const int topk = between(0, 7) == 0 ? std::min(experts, 16) : between(1, std::min(experts, 16));
  const int ranks = between(1, 8);
  const int most_tokens = between(0, 5) == 0 ? 400 : 60;
  int tokens = between(1, most_tokens);
  tokens |= between(0, 1);  // odd ones more often
  const Shape shape = test::small_shape(ranks, tokens, experts, topk);

  RoutingSpec spec;
  spec.seed = random.next();
  switch (between(0, 4)) {
    case 0:
      spec.kind = RoutingKind::balanced;
      break;
    case 1:
      spec.kind = RoutingKind::uniform;
      break;
    case 2:
      spec.kind = RoutingKind::zipf;
      spec.alpha = random.unit() * 4;  // steep: most experts empty
      break;
    default:
      spec.kind = RoutingKind::hot;
      spec.hot_experts = between(1, experts);
      spec.hot_share = between(0, 2) == 0 ? 1.0 : random.unit();
      break;
  }
  return {make_problem(shape, spec), static_cast<SlotOrder>(between(0, 2)), between(0, ranks - 1)};
}

// Which corners the trials went through: a property test that never meets them proves little.
struct Coverage {
  int one_expert = 0, k_is_e = 0, odd_tokens = 0, empty_experts = 0, hot_expert = 0,
      many_blocks = 0;
  int most_experts = 0, most_topk = 0;
  int slot_orders[3] = {};
  int ranks[9] = {};

  void add(const Trial& trial, const ScheduleTables& tables) {
    const Shape& shape = trial.problem.shape;
    std::vector<int> hits(shape.experts, 0);
    for (const std::int32_t expert : trial.problem.routing.experts) {
      ++hits[expert];
    }
    one_expert += shape.experts == 1;
    k_is_e += shape.topk == shape.experts;
    odd_tokens += shape.tokens_per_rank % 2;
    empty_experts += std::count(hits.begin(), hits.end(), 0) > 0;
    hot_expert +=
        shape.experts > 4 && *std::max_element(hits.begin(), hits.end()) == shape.tokens();
    many_blocks += tables.row_blocks() > 2 * shape.experts;
    most_experts = std::max(most_experts, shape.experts);
    most_topk = std::max(most_topk, shape.topk);
    ++slot_orders[static_cast<int>(trial.slot_order)];
    ++ranks[shape.ranks];
  }
};

TEST(TablesProperty, GoldenAndBothThrustSystemsAgreeAndKeepTheInvariants) {
  constexpr int kTrials = 1500;
  Coverage coverage;
  for (int index = 0; index < kTrials; ++index) {
    const Trial trial = random_trial(index);
    const Shape& shape = trial.problem.shape;
    const Routing& routing = trial.problem.routing;
    SCOPED_TRACE("trial " + std::to_string(index) + ": " + describe(trial.problem));
    const ScheduleTables golden = build_tables_golden(shape, routing, trial.slot_order, trial.rank);
    coverage.add(trial, golden);
    const auto broken = check_tables(golden, shape, routing);
    ASSERT_FALSE(broken) << to_string(*broken);
    for (const ThrustSystem system : {ThrustSystem::cpp, ThrustSystem::omp}) {
      const ScheduleTables found =
          build_tables_thrust(shape, routing, trial.slot_order, trial.rank, system);
      const auto difference = compare_tables(golden, found);
      ASSERT_FALSE(difference) << to_string(*difference);
      ASSERT_EQ(golden, found);
    }
  }
  EXPECT_GT(coverage.one_expert, 20);
  EXPECT_GT(coverage.k_is_e, 100);
  EXPECT_GT(coverage.odd_tokens, 500);
  EXPECT_GT(coverage.empty_experts, 200);
  EXPECT_GT(coverage.hot_expert, 100);
  EXPECT_GT(coverage.many_blocks, 50);
  EXPECT_GT(coverage.most_experts, 450);
  EXPECT_EQ(coverage.most_topk, 16);
  for (const int count : coverage.slot_orders) {
    EXPECT_GT(count, 300);
  }
  for (int ranks = 1; ranks <= 8; ++ranks) {
    EXPECT_GT(coverage.ranks[ranks], 100);
  }
}

// What the ids buffer may hold when a wait for the ids was given up. The tables must stay within
// their arrays (the sanitizers watch) and be those of the same ids, the bad ones at the last expert:
// every hit in a row of its own, also where a token has an expert twice.
TEST(TablesProperty, AnyIdsGiveTablesWithinBounds) {
  constexpr std::int32_t kLeast = std::numeric_limits<std::int32_t>::min();
  constexpr std::int32_t kMost = std::numeric_limits<std::int32_t>::max();
  for (int index = 0; index < 200; ++index) {
    const Trial trial = random_trial(index);
    const Shape& shape = trial.problem.shape;
    SCOPED_TRACE("trial " + std::to_string(index) + ": " + describe(trial.problem));
    const std::int32_t bad[] = {-1, -1, kLeast, kMost, shape.experts, 0xFFFF, 0x10000};
    Random random(77, index);
    Routing found = trial.problem.routing;
    Routing clamped = found;
    const int of_four = static_cast<int>(random.below(4)) + 1;  // up to all of them
    for (std::size_t hit = 0; hit < found.experts.size(); ++hit) {
      if (static_cast<int>(random.below(4)) < of_four) {
        found.experts[hit] = bad[random.below(std::size(bad))];
        clamped.experts[hit] = shape.experts - 1;
      }
    }
    const ScheduleTables golden = build_tables_golden(shape, clamped, trial.slot_order, trial.rank);
    const auto broken = check_tables(golden, shape, clamped);
    ASSERT_FALSE(broken) << to_string(*broken);
    for (const ThrustSystem system : {ThrustSystem::cpp, ThrustSystem::omp}) {
      const auto difference = compare_tables(
          golden, build_tables_thrust(shape, found, trial.slot_order, trial.rank, system));
      ASSERT_FALSE(difference) << to_string(*difference);
    }
  }
}

}  // namespace
}  // namespace fusescope
