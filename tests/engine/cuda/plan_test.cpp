// What these kernels can run: rules that need no GPU to be asked.
#include "engine/cuda/plan.hpp"

#include "engine/cuda/cuda_test_support.hpp"

namespace fusescope::engine::cuda::test {
namespace {

const Device kH200{0, "NVIDIA H200", 132, 232448, ""};

std::string why(const Shape& shape, const Config& config) {
  return why_illegal_on_device(make_test_problem(shape, "uniform", 1), config, limits_of(kH200));
}

void expect_refusal(const Shape& shape, const Config& config, const std::string& part) {
  const std::string reason = why(shape, config);
  EXPECT_NE(reason.find(part), std::string::npos) << "\"" << part << "\" is not in: " << reason;
}

const Shape kSmall = make_shape(2, 65, 512, 8, 2, 128);

TEST(PlanRules, DefaultsAreLegal) {
  EXPECT_EQ(why(kSmall, Config{}), "");
}

TEST(PlanRules, KernelOneNeedsNoCommunicationBlocks) {
  Config config;
  config.dispatch_comm_sms = 0;
  EXPECT_EQ(why(kSmall, config), "");
  config.dispatch_comm_sms = -1;
  expect_refusal(kSmall, config, "dispatch_comm_sms -1");
}

TEST(PlanRules, FusedActivationNeedsWholeUnits) {
  Shape shape = kSmall;
  shape.intermediate = 72;
  Config config;
  config.activation = Activation::fused;
  EXPECT_EQ(why(shape, config), "");
}

TEST(PlanRules, AsManyRanksAsTheFlagsHaveRoomFor) {
  Shape shape = kSmall;
  shape.ranks = 17;
  expect_refusal(shape, Config{}, "at most 16");
}

TEST(PlanRules, AsManyChunksAsAPlaneHasFlags) {
  Config config;
  config.watermark_chunks = 65;
  expect_refusal(kSmall, config, "64 flags");
  config.form = LayerForm::serial;
  EXPECT_EQ(why(kSmall, config), "");
}

TEST(PlanRules, PartialRowsWithin32BitUnits) {
  Shape shape = kSmall;
  shape.hidden = 65536;
  shape.experts = 2040;
  Config config;
  config.form = LayerForm::serial;
  EXPECT_EQ(why(shape, config), "");
  shape.experts = 2048;  // 2050 row blocks at most: 2050 * 128 * 65536 / 8 units
  expect_refusal(shape, config, "2149580800 units");
  config.form = LayerForm::fused;
  config.tokens_per_block = 1;
  expect_refusal(shape, config, "2149580800 units");
}

TEST(PlanRules, TokensPerBlockWithinABlocksThreads) {
  Shape shape = kSmall;
  shape.hidden = 64;
  Config config;
  config.tokens_per_block = 385;
  expect_refusal(shape, config, "384 threads");
}

TEST(PlanRules, JobsFitIntoWhatTheGemmLeaves) {
  Shape shape = kSmall;
  shape.hidden = 32768;
  Config config;
  config.tokens_per_block = 1;
  expect_refusal(shape, config, "combine dispenser");
  config.combine = Combine::block_per_job;
  config.all_hands = false;
  EXPECT_EQ(why(shape, config), "");
}

}  // namespace
}  // namespace fusescope::engine::cuda::test
