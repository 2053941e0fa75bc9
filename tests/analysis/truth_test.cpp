// The truth test: a known delay is injected at a named point of the simulated layer, and the wall time
// that it adds must be attributed to that point.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <functional>
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

std::int64_t of_steps(const CriticalPath& path, const std::vector<Step>& steps) {
  std::int64_t ns = 0;
  for (const Step step : steps) {
    ns += path.by_step[static_cast<std::size_t>(step)];
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
  std::vector<Step> steps;                                // it must be in these steps ...
  std::function<std::int64_t(const CriticalPath&)> time;  // ... and this must have grown by it
  std::vector<int> delays_us;
  bool one_token_per_block = false;
};
std::ostream& operator<<(std::ostream& out, const Point& point) {
  return out << point.name;
}

const std::vector<Step> kDispatch = {Step::dispatch_head, Step::dispatch_order,
                                     Step::dispatch_bandwidth};
const std::vector<Step> kJobs = {Step::combine_work, Step::push_drain};

// A block that moves several tokens in step does not record which of them held it up: who was late is
// asked of blocks that move one.
const std::vector<Point> kPoints = {
    {InjectPoint::pull,
     "pull",
     kDispatch,
     [](const CriticalPath& path) { return of_kind(path, Kind::pull); },
     {20, 50, 100}},
    {InjectPoint::scatter,
     "scatter",
     kDispatch,
     [](const CriticalPath& path) { return of_kind(path, Kind::scatter); },
     {20, 50, 100}},
    {InjectPoint::job,
     "job",
     kJobs,
     [](const CriticalPath& path) { return of_kind(path, Kind::sum); },
     {50, 100, 200}},
    {InjectPoint::push,
     "push",
     kJobs,
     [](const CriticalPath& path) { return of_kind(path, Kind::push); },
     {50, 100, 200}},
    {InjectPoint::watermark,
     "watermark",
     {Step::watermark},
     [](const CriticalPath& path) { return of_kind(path, Kind::watermark); },
     {200, 400, 800}},
    {InjectPoint::source_rank,
     "source rank",
     kDispatch,
     [](const CriticalPath& path) { return path.by_source_rank[kLateRank]; },
     {20, 50, 100},
     true},
    {InjectPoint::token,
     "token",
     kDispatch,
     [](const CriticalPath& path) { return of_token(path, kLateToken); },
     {200, 400, 800},
     true},
};

class TruthTest : public testing::TestWithParam<Point> {
 protected:
  void check(const char* shape, const Problem& problem) {
    const Point& point = GetParam();
    Config config;
    if (point.one_token_per_block) {
      config.dispatch_comm_sms = 40;
      config.tokens_per_block = 1;
    }
    const timeline::Timeline before = simulated(problem, config);
    const CriticalPath path_before = critical_path(before);
    for (const int delay_us : point.delays_us) {
      SCOPED_TRACE(std::string(shape) + ", " + std::to_string(delay_us) + " us");
      config.inject.point = point.point;
      config.inject.delay_ns = delay_us * 1000;
      config.inject.rank = point.point == InjectPoint::source_rank ? kLateRank : -1;
      config.inject.token = point.point == InjectPoint::token ? kLateToken : -1;
      const timeline::Timeline after = simulated(problem, config);
      const CriticalPath path_after = critical_path(after);

      const auto added = static_cast<double>(after.wall_ns() - before.wall_ns());
      const auto grown = static_cast<double>(point.time(path_after) - point.time(path_before));
      const auto in_steps = static_cast<double>(of_steps(path_after, point.steps) -
                                                of_steps(path_before, point.steps));
      std::printf(
          "  %-6s %-11s %4d us added %8.1f us of wall, %6.1f%% at its point, %6.1f%% in its "
          "steps\n",
          shape, point.name, delay_us, added / 1000, 100 * grown / added, 100 * in_steps / added);
      // A delay that overlap hides would prove nothing.
      EXPECT_GE(added, 0.5 * delay_us * 1000);
      EXPECT_GE(grown, 0.95 * added);
      EXPECT_GE(in_steps, 0.95 * added);
    }
  }
};

TEST_P(TruthTest, SeedShape) {
  check("seed", seed_problem("uniform"));
}
TEST_P(TruthTest, SeedShapeSkewed) {
  check("zipf", seed_problem("zipf:1.2"));
}
TEST_P(TruthTest, SmallShape) {
  check("small", small_problem("uniform"));
}

std::string test_name(const testing::TestParamInfo<Point>& tested) {
  std::string name = tested.param.name;
  std::replace(name.begin(), name.end(), ' ', '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(Injected, TruthTest, testing::ValuesIn(kPoints), test_name);

}  // namespace
}  // namespace fusescope::analysis
