// Real routing: a recorded serving run of Qwen1.5-MoE-A2.7B, where a folder of recordings is given.
#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "layer/check.hpp"
#include "layer_test_support.hpp"

namespace fusescope {
namespace {

std::string recording() {
  const char* folder = std::getenv("FUSESCOPE_ROUTING_DIR");
  const std::filesystem::path chosen =
      folder != nullptr ? std::filesystem::path(folder)
                        : std::filesystem::path(FUSESCOPE_TEST_SOURCE_DIR) / "../shared/routing";
  return (chosen / "qwen1.5-moe-a2.7b-layer0-top4.jsonl.gz").string();
}

class RealRouting : public testing::Test {
 protected:
  void SetUp() override {
    if (!std::filesystem::exists(recording())) {
      GTEST_SKIP() << "no " << recording() << " (set FUSESCOPE_ROUTING_DIR)";
    }
    shape_ = test::small_shape(4, 512, 60, 4);
  }
  Problem problem(const std::string& options) const {
    return make_problem(shape_, parse_routing("file:" + recording() + options));
  }
  static std::vector<int> hits(const Problem& problem) {
    std::vector<int> hits(problem.shape.experts, 0);
    for (const std::int32_t expert : problem.routing.experts) {
      ++hits[expert];
    }
    std::sort(hits.rbegin(), hits.rend());
    return hits;
  }
  Shape shape_;
};

TEST_F(RealRouting, WarmUpIsTheWorstHotSpot) {
  const std::vector<int> warm_up = hits(problem(""));
  EXPECT_EQ(warm_up[3], shape_.tokens());  // every token goes to the same four experts
  EXPECT_EQ(warm_up[4], 0);
}

TEST_F(RealRouting, TextIsSpreadOut) {
  const Problem text = problem("#skip=16384");
  EXPECT_LT(hits(text)[0], shape_.tokens());
  EXPECT_GT(hits(text)[50], 0);
  EXPECT_TRUE(test::contains(describe(text), "2434 tokens after 16384 skipped")) << describe(text);
}

TEST_F(RealRouting, BothPassEveryCheck) {
  for (const char* options : {"", "#skip=16384"}) {
    for (const CheckResult& result : check_layer(problem(options), Config{})) {
      EXPECT_TRUE(result.passed) << result.name << ": " << result.detail;
    }
  }
}

}  // namespace
}  // namespace fusescope
