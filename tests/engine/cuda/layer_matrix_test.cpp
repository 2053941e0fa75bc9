// End to end: experts x routing x K, odd token counts, hidden sizes from 512 to 7168, fused and serial,
// ranks co-located and on several devices; NaN-poisoned buffers, fresh random inputs for each case.
#include <algorithm>
#include <array>
#include <cmath>

#include "engine/cuda/cuda_test_support.hpp"

namespace fusescope::engine::cuda::test {
namespace {

constexpr std::array kHidden = {512, 1024, 2048, 520, 4096, 7168};
constexpr std::array kIntermediate = {128, 256, 72, 384, 64, 192};

// A different mix of knobs for each case, so that the matrix covers their combinations thinly.
Config config_of_case(int number) {
  Config config;
  config.form = number % 5 == 4 ? LayerForm::serial : LayerForm::fused;
  config.dispatch_comm_sms = 1 + number * 7 % 40;
  config.combine_comm_sms = 1 + number * 5 % 40;
  config.tokens_per_block = 1 + number % 12;
  config.combine = number % 3 == 2 ? Combine::block_per_job : Combine::dispenser;
  config.all_hands = config.combine == Combine::dispenser && number % 2 == 0;
  config.activation = number % 4 == 1 ? Activation::fused : Activation::separate;
  config.tile = number % 7 == 3 ? TileShape::m128n128 : TileShape::m128n256;
  config.slot_order = static_cast<SlotOrder>(number % 3);
  config.watermark_chunks = 1 + number % 4;
  config.graph = number % 6 != 5;
  config.schedule = number % 11 == 10 ? ScheduleSite::host : ScheduleSite::device;
  return config;
}

void expect_right(const Problem& problem, const std::vector<Device>& devices, const Config& config,
                  std::uint64_t seed) {
  ASSERT_EQ(why_illegal_on_device(problem, config, limits_of(devices.front())), "");
  LayerRunner runner(problem, devices, {.seed = seed, .deadline_ns = kTestDeadlineNs});
  EXPECT_LE(checked_run(runner, config), kMaxRelativeError) << describe(problem) << "\n"
                                                            << describe(config);
}

void run_experts(int experts, int ranks, const std::vector<Device>& devices) {
  int number = experts;
  for (const std::string& routing : matrix_routings()) {
    for (const int topk : {1, 2, 4, 6, 8}) {
      if (topk > experts) {
        continue;
      }
      ++number;
      const auto pick = static_cast<std::size_t>(number) % kHidden.size();
      const int tokens = 33 + 2 * (number % 40);
      const Shape shape =
          make_shape(ranks, tokens, kHidden[pick], experts, topk, kIntermediate[pick]);
      const auto seed = static_cast<std::uint64_t>(number);
      expect_right(make_test_problem(shape, routing, seed), devices, config_of_case(number), seed);
    }
  }
}

class LayerMatrix : public testing::TestWithParam<int> {};

TEST_P(LayerMatrix, TwoRanksOnOneDevice) {
  FUSESCOPE_NEED_DEVICES(devices, 1);
  run_experts(GetParam(), 2, devices);
}

TEST_P(LayerMatrix, TwoDevices) {
  FUSESCOPE_NEED_DEVICES(devices, 2);
  run_experts(GetParam(), 2, devices);
}

INSTANTIATE_TEST_SUITE_P(Experts, LayerMatrix, testing::Values(4, 8, 32, 64, 128, 256));

class CoLocated : public testing::TestWithParam<int> {};

TEST_P(CoLocated, OneDevice) {
  FUSESCOPE_NEED_DEVICES(devices, 1);
  const int ranks = GetParam();
  for (int number = 0; number < 12; ++number) {
    const Shape shape = make_shape(ranks, 45, 1024, 16, 4, 128);
    expect_right(make_test_problem(shape, "uniform", 7), devices, config_of_case(number), 11);
  }
}

INSTANTIATE_TEST_SUITE_P(Ranks, CoLocated, testing::Values(1, 2, 4, 8));

TEST(TwoDevices, FourRanks) {
  FUSESCOPE_NEED_DEVICES(devices, 2);
  for (int number = 0; number < 12; ++number) {
    const Shape shape = make_shape(4, 45, 1024, 16, 4, 128);
    expect_right(make_test_problem(shape, "zipf", 7), devices, config_of_case(number), 11);
  }
}

// The check itself must be able to fail: on poisoned outputs, and on outputs of another routing.
TEST(Verification, SeesWrongOutputs) {
  FUSESCOPE_NEED_DEVICES(devices, 1);
  const Shape shape = make_shape(2, 65, 512, 8, 2, 128);
  const Problem problem = make_test_problem(shape, "uniform", 1);
  LayerRunner runner(problem, devices, {.seed = 1, .deadline_ns = kTestDeadlineNs});
  EXPECT_LE(checked_run(runner, Config{}), kMaxRelativeError);
  const std::uint64_t right = runner.output_checksum();
  runner.set_routing(make_test_problem(shape, "uniform", 2).routing);
  EXPECT_GT(runner.relative_error(), 0.1);
  runner.memory().poison();
  EXPECT_TRUE(std::isinf(runner.relative_error()));
  EXPECT_NE(runner.output_checksum(), right);
}

TEST(FullSize, SeedShape) {
  FUSESCOPE_NEED_DEVICES(devices, 1);
  std::vector<Device> all = usable_devices();
  all.resize(std::min<std::size_t>(all.size(), 2));
  enable_peer_access(all);
  const Problem problem = make_test_problem(make_shape(2, 1023, 4096, 64, 8, 768), "uniform", 3);
  LayerRunner runner(problem, all, {.seed = 5, .deadline_ns = kTestDeadlineNs});
  Config config;
  EXPECT_LE(checked_run(runner, config), kMaxRelativeError);
  config.activation = Activation::fused;
  EXPECT_LE(checked_run(runner, config), kMaxRelativeError);
  config.form = LayerForm::serial;
  EXPECT_LE(checked_run(runner, config), kMaxRelativeError);
}

TEST(FullSize, LargeHidden) {
  FUSESCOPE_NEED_DEVICES(devices, 1);
  const Problem problem = make_test_problem(make_shape(2, 255, 7168, 64, 8, 256), "zipf", 3);
  LayerRunner runner(problem, devices, {.seed = 5, .deadline_ns = kTestDeadlineNs});
  EXPECT_LE(checked_run(runner, Config{}), kMaxRelativeError);
}

}  // namespace
}  // namespace fusescope::engine::cuda::test
