// What `fusescope check` runs, on the seed's shape.
#include "layer/check.hpp"

#include <algorithm>

#include "layer_test_support.hpp"

namespace fusescope {
namespace {

TEST(CheckLayer, TheSeedsShapePassesWithEveryRouting) {
  const Shape shape = load_shape("seed-tp4");
  for (const char* routing : {"balanced", "zipf:1.2", "hot:2,0.5"}) {
    const std::vector<CheckResult> results =
        check_layer(make_problem(shape, parse_routing(routing)), Config{});
    ASSERT_EQ(results.size(), 6u);  // tables and dataflow of three slot orders
    for (const CheckResult& result : results) {
      EXPECT_TRUE(result.passed) << result.name << ": " << result.detail;
      EXPECT_FALSE(result.detail.empty());
      EXPECT_GT(result.seconds, 0);
    }
  }
}

TEST(CheckLayer, AFaultIsAResultNotAnException) {
  // NaN weights get past no validation; here they come in behind its back.
  Problem problem = make_problem(test::small_shape(2, 16, 4, 2), parse_routing("uniform"));
  problem.routing.weights[5] = std::numeric_limits<float>::quiet_NaN();
  const std::vector<CheckResult> results = check_layer(problem, Config{});
  EXPECT_TRUE(std::any_of(results.begin(), results.end(),
                          [](const CheckResult& result) { return !result.passed; }));
}

}  // namespace
}  // namespace fusescope
