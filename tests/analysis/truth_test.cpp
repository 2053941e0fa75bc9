// The truth test: a known delay is injected at a named point of the simulated layer, and the wall time
// that it adds must be attributed to that point.

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <initializer_list>
#include <ostream>
#include <string>
#include <vector>

#include "analysis/critical_path.hpp"
#include "simulated.hpp"

namespace fusescope::analysis {
namespace {

using timeline::Kind;

constexpr int kLateRank = 1;
constexpr int kLateToken = 7;  // moved early by a fused layer of either shape

std::int64_t of_kind(const CriticalPath& path, Kind kind) {
  return path.by_kind[static_cast<std::size_t>(kind)];
}

std::int64_t sum(const std::array<std::int64_t, kSteps>& by_step,
                 std::initializer_list<Step> steps) {
  std::int64_t ns = 0;
  for (const Step step : steps) {
    ns += by_step[static_cast<std::size_t>(step)];
  }
  return ns;
}

std::int64_t of_token(const CriticalPath& path, int token) {
  const auto found = std::find_if(path.by_token.begin(), path.by_token.end(),
                                  [token](const TokenTime& time) { return time.token == token; });
  return found == path.by_token.end() ? 0 : found->ns;
}

// Where the time of a delay belongs.
struct Point {
  InjectPoint point;
  const char* name;
  std::int64_t (*at_point)(const CriticalPath&);  // the path's time at the very point ...
  std::int64_t (*in_steps)(const CriticalPath&);  // ... and in the steps that it is part of
  std::vector<int> delays_us;
};
std::ostream& operator<<(std::ostream& out, const Point& point) {
  return out << point.name;
}

std::int64_t dispatch(const CriticalPath& path) {
  return sum(path.by_step, {Step::dispatch_head, Step::dispatch_order, Step::dispatch_bandwidth});
}
std::int64_t jobs(const CriticalPath& path) {
  return sum(path.by_step, {Step::combine_work, Step::push_drain});
}
std::int64_t tiles(const CriticalPath& path) {
  return sum(path.by_step, {Step::gemm_1, Step::gemm_2});
}
std::int64_t watermark(const CriticalPath& path) {
  return sum(path.by_step, {Step::watermark});
}

// Delays are large against the few microseconds by which ranks differ: whichever rank is last after the
// delay, its own share of the other steps comes with it.
const std::vector<Point> kPoints = {
    {InjectPoint::pull,
     "pull",
     [](const CriticalPath& path) { return of_kind(path, Kind::pull); },
     dispatch,
     {100, 200, 400}},
    {InjectPoint::scatter,
     "scatter",
     [](const CriticalPath& path) { return of_kind(path, Kind::scatter); },
     dispatch,
     {100, 200, 400}},
    {InjectPoint::job,
     "job",
     [](const CriticalPath& path) { return of_kind(path, Kind::sum); },
     jobs,
     {100, 200, 400}},
    {InjectPoint::push,
     "push",
     [](const CriticalPath& path) { return of_kind(path, Kind::push); },
     jobs,
     {100, 200, 400}},
    {InjectPoint::watermark,
     "watermark",
     [](const CriticalPath& path) { return of_kind(path, Kind::watermark); },
     watermark,
     {200, 400, 800}},
    {InjectPoint::source_rank,
     "source rank",
     [](const CriticalPath& path) { return path.by_source_rank[kLateRank]; },
     dispatch,
     {100, 200, 400}},
    {InjectPoint::token,
     "token",
     [](const CriticalPath& path) { return of_token(path, kLateToken); },
     dispatch,
     {800, 1600, 3200}},
};

// On the machine as it is, a late row also parts tiles that share weights in the cache: the GEMM gets slower
// too, and rightly takes that part of the added wall. With everything in the cache the delay stands alone.
enum class Cache { real, holds_all };

void check(const Point& point, const char* run, const Problem& problem, Cache cache,
           Config config = {}) {
  const auto simulate = cache == Cache::real ? simulated : simulated_in_cache;
  const timeline::Timeline before = simulate(problem, config);
  const CriticalPath path_before = critical_path(before);
  for (const int delay_us : point.delays_us) {
    SCOPED_TRACE(std::string(run) + ", " + std::to_string(delay_us) + " us");
    config.inject.point = point.point;
    config.inject.delay_ns = delay_us * 1000;
    config.inject.rank = point.point == InjectPoint::source_rank ? kLateRank : -1;
    config.inject.token = point.point == InjectPoint::token ? kLateToken : -1;
    const timeline::Timeline after = simulate(problem, config);
    const CriticalPath path_after = critical_path(after);

    const auto added = static_cast<double>(after.wall_ns() - before.wall_ns());
    const auto share = [&](std::int64_t (*time)(const CriticalPath&)) {
      return static_cast<double>(time(path_after) - time(path_before)) / added;
    };
    const double at_point = share(point.at_point);
    const double in_steps = share(point.in_steps);
    std::printf(
        "  %-5s %-11s %4d us adds %7.1f us of wall: at the point %5.1f%%, in its steps %5.1f%%\n",
        run, point.name, delay_us, added / 1000, 100 * at_point, 100 * in_steps);
    // A delay that overlap hides would prove nothing.
    EXPECT_GE(added, 0.5 * delay_us * 1000);
    EXPECT_GE(at_point, 0.95);
    if (cache == Cache::holds_all) {
      EXPECT_GE(in_steps, 0.95);
      // More than was added only where it took the place of tiles that ran beside it on the path.
      EXPECT_LE(in_steps, 1.05 + std::max(0.0, -share(tiles)));
    }
  }
}

class TruthTest : public testing::TestWithParam<Point> {};

TEST_P(TruthTest, SeedShape) {
  check(GetParam(), "seed", seed_problem("uniform"), Cache::holds_all);
}
TEST_P(TruthTest, SeedShapeSkewed) {
  check(GetParam(), "zipf", seed_problem("zipf:1.2"), Cache::holds_all);
}
TEST_P(TruthTest, SmallShape) {
  check(GetParam(), "small", small_problem("uniform"), Cache::holds_all);
}
TEST_P(TruthTest, SeedShapeOnItsMachine) {
  check(GetParam(), "seed", seed_problem("uniform"), Cache::real);
}

// One block per job, nothing ordered, no further hands.
TEST(Truth, JobsOfTheFirstFusedForm) {
  Config config;
  config.pull_order = PullOrder::by_token;
  config.job_order = JobOrder::by_token;
  config.combine = Combine::block_per_job;
  config.all_hands = false;
  for (const Point& point : kPoints) {
    if (point.point == InjectPoint::job || point.point == InjectPoint::push) {
      check(point, "first", seed_problem("uniform"), Cache::holds_all, config);
    }
  }
}

std::string test_name(const testing::TestParamInfo<Point>& tested) {
  std::string name = tested.param.name;
  std::replace(name.begin(), name.end(), ' ', '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(Injected, TruthTest, testing::ValuesIn(kPoints), test_name);

}  // namespace
}  // namespace fusescope::analysis
