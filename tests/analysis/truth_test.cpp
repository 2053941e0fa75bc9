// The truth test: a known delay is injected at a named point of the simulated layer, and the wall time
// that it adds must be attributed to that point.

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <string>

#include "simulated.hpp"
#include "truth.hpp"

namespace fusescope::analysis {
namespace {

// On the machine as it is, a late row also parts tiles that share weights in the cache: the GEMM gets slower
// too, and rightly takes that part of the added wall. With everything in the cache the delay stands alone.
enum class Machine { seed, seed_in_cache, h200_in_cache };
// Whether the steps may be given more than was added.
enum class More { where_tiles_gave_way, where_fetches_overlap };

// Kernel 1's longest main loop and epilogue.
double longest_tile_us(const timeline::Timeline& timeline) {
  std::int64_t mainloop = 0;
  std::int64_t epilogue = 0;
  for (const timeline::Event& event : timeline.events) {
    if (timeline.tracks[event.track].stage != timeline::Stage::dispatch_gemm) {
      continue;
    }
    std::int64_t& longest = event.kind == timeline::Kind::mainloop ? mainloop : epilogue;
    if (event.kind == timeline::Kind::mainloop || event.kind == timeline::Kind::epilogue) {
      longest = std::max(longest, event.end_ns - event.begin_ns);
    }
  }
  return static_cast<double>(mainloop + epilogue) / 1e3;
}

using Simulate = timeline::Timeline (*)(const Problem&, const Config&);

Simulate simulator_of(Machine machine) {
  switch (machine) {
    case Machine::seed:
      return simulated;
    case Machine::seed_in_cache:
      return simulated_in_cache;
    default:
      return simulated_on_h200_in_cache;
  }
}

void check(const TruthPoint& point, const char* run, const Problem& problem, Machine machine,
           Config config = {}, More more = More::where_tiles_gave_way) {
  const Simulate simulate = simulator_of(machine);
  const bool in_cache = machine != Machine::seed;
  const timeline::Timeline before = simulate(problem, config);
  for (const int delay_us : point.delays_us) {
    SCOPED_TRACE(std::string(run) + ", " + std::to_string(delay_us) + " us");
    config.inject = injection(point, delay_us);
    const std::array without = {told(point, config.inject, before)};
    const std::array with = {told(point, config.inject, simulate(problem, config))};
    const TruthRow row = compare_told(without, with);
    std::printf(
        "  %-5s %-11s %4d us adds %7.1f us of wall: at the point %5.1f%%, in its steps %5.1f%%\n",
        run, point.name, delay_us, row.added_us, 100 * row.share(), 100 * row.steps_share());
    // A delay that overlap hides would prove nothing.
    EXPECT_GE(row.added_us, 0.5 * delay_us);
    EXPECT_GE(row.share(), 0.95);
    if (in_cache) {
      // Less only where the late row put a tile more of its block behind it on the path: one at most.
      const double tile_us = std::clamp(row.tiles_us, 0.0, longest_tile_us(before));
      EXPECT_GE(row.steps_share(), 0.95 - tile_us / row.added_us);
    }
    if (in_cache && more == More::where_tiles_gave_way) {
      // More than was added only where it took the place of tiles that ran beside it on the path.
      EXPECT_LE(row.steps_share(), 1.05 + std::max(0.0, -row.tiles_us / row.added_us));
    }
  }
}

class TruthTest : public testing::TestWithParam<TruthPoint> {};

TEST_P(TruthTest, SeedShape) {
  check(GetParam(), "seed", seed_problem("uniform"), Machine::seed_in_cache);
}
TEST_P(TruthTest, SeedShapeSkewed) {
  check(GetParam(), "zipf", seed_problem("zipf:1.2"), Machine::seed_in_cache);
}
TEST_P(TruthTest, SmallShape) {
  check(GetParam(), "small", small_problem("uniform"), Machine::seed_in_cache);
}
TEST_P(TruthTest, SeedShapeOnItsMachine) {
  check(GetParam(), "seed", seed_problem("uniform"), Machine::seed);
}

// One block per job, nothing ordered, no further hands.
TEST(Truth, JobsOfTheFirstFusedForm) {
  Config config;
  config.pull_order = PullOrder::by_token;
  config.job_order = JobOrder::by_token;
  config.combine = Combine::block_per_job;
  config.all_hands = false;
  for (const TruthPoint& point : truth_points()) {
    if (point.point == InjectPoint::job || point.point == InjectPoint::push) {
      check(point, "first", seed_problem("uniform"), Machine::seed_in_cache, config);
    }
  }
}

// Kernel 1 without communication blocks: a block's slots fetch beside each other, so that a delay takes the place
// of other fetches, and the wall grows by less than the delay's part of the path.
TEST(Truth, WhereEveryBlockFetchesFirst) {
  Config config;
  config.dispatch_comm_sms = 0;
  for (const TruthPoint& point : truth_points()) {
    check(point, "fetch", seed_problem("uniform"), Machine::seed_in_cache, config,
          More::where_fetches_overlap);
  }
}

// The same with half of the tokens behind the head, where a block fetches one token at a time.
TEST(Truth, WhereBlocksFetchBesideTheirTiles) {
  Config config;
  config.dispatch_comm_sms = 0;
  config.dispatch_head = 50;
  config.activation = Activation::fused;
  config.tile = TileShape::m160n256;
  for (const TruthPoint& point : truth_points()) {
    check(point, "head", seed_problem("uniform"), Machine::h200_in_cache, config,
          More::where_fetches_overlap);
  }
}

std::string test_name(const testing::TestParamInfo<TruthPoint>& tested) {
  std::string name = tested.param.name;
  std::replace(name.begin(), name.end(), ' ', '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(Injected, TruthTest, testing::ValuesIn(truth_points()), test_name);

}  // namespace
}  // namespace fusescope::analysis
