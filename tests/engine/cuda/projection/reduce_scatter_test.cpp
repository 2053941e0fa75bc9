// The third kernel against the reference: ranks, sizes, every knob; bit by bit across knobs; a thousand
// iterations with nothing of the host between them.
#include <array>

#include "base/random.hpp"
#include "engine/cuda/projection/test_support.hpp"

namespace fusescope::engine::cuda::projection::test {
namespace {

// --- ranks and sizes -----------------------------------------------------------------------------

std::vector<Config> matrix_configs() {
  std::vector<Config> all(5);
  all[1].push_sms = 0;
  all[1].rows_per_push = 3;
  all[1].watermark_chunks = 7;
  all[1].pushers = 4;
  all[2].all_hands = false;
  all[2].row_order = RowOrder::by_rank;
  all[3].tile = TileShape::m128n128;
  all[3].graph = false;
  all[3].watermark_chunks = 64;
  all[4].form = LayerForm::serial;
  all[4].collectives = Collectives::peer_copies;
  return all;
}

struct Size {
  int tokens_per_rank;
  int hidden;
  int rank_depth;
};

// Whole row blocks and odd ones, rows of two destinations in one block, one token; columns and depth that
// fill no whole tile.
constexpr Size kSizes[] = {{1, 256, 64},    {33, 512, 72},    {127, 264, 128}, {128, 512, 256},
                           {129, 1024, 64}, {301, 768, 1024}, {640, 4096, 136}};

void check_matrix(int ranks, const std::vector<Device>& devices) {
  for (const Size& size : kSizes) {
    const Shape shape = make_shape(ranks, size.tokens_per_rank, size.hidden, size.rank_depth);
    SCOPED_TRACE(describe(shape));
    Runner runner(shape, devices, {.seed = 3, .deadline_ns = kTestDeadlineNs});
    Outputs expected;
    for (const Config& config : matrix_configs()) {
      ASSERT_EQ(why_illegal(shape, config, limits_of(devices.front())), "") << named(config);
      EXPECT_EQ(checked_run(runner, config), "") << named(config);
      if (expected.by_rank.empty()) {
        expected = read_outputs(runner);
      }
      EXPECT_EQ(first_difference(expected, read_outputs(runner)), "") << named(config);
    }
  }
}

class ReduceScatterMatrix : public testing::TestWithParam<int> {};

TEST_P(ReduceScatterMatrix, OneDevice) {
  FUSESCOPE_NEED_DEVICES(devices, 1);
  check_matrix(GetParam(), devices);
}

TEST_P(ReduceScatterMatrix, TwoDevices) {
  FUSESCOPE_NEED_DEVICES(devices, 2);
  check_matrix(GetParam(), devices);
}

TEST_P(ReduceScatterMatrix, FourDevices) {
  FUSESCOPE_NEED_DEVICES(devices, 4);
  check_matrix(GetParam(), devices);
}

INSTANTIATE_TEST_SUITE_P(Ranks, ReduceScatterMatrix, testing::Values(1, 2, 3, 4, 8));

// --- attention's real sizes ----------------------------------------------------------------------

void check_full_size(int ranks, const std::vector<Device>& devices) {
  for (const Shape& shape : {Shape{ranks, 1024, 4096, 4096}, Shape{ranks, 1000, 7168, 8192}}) {
    SCOPED_TRACE(describe(shape));
    Runner runner(shape, devices, {.seed = 5, .deadline_ns = kTestDeadlineNs});
    EXPECT_EQ(checked_run(runner, fitting({}, shape, devices)), "");
    const Outputs fused = read_outputs(runner);
    Config serial;
    serial.form = LayerForm::serial;
    EXPECT_EQ(checked_run(runner, serial), "");
    EXPECT_EQ(first_difference(fused, read_outputs(runner)), "");
  }
}

TEST(ReduceScatterFullSize, TwoRanksOnOneDevice) {
  FUSESCOPE_NEED_DEVICES(devices, 1);
  check_full_size(2, devices);
}

TEST(ReduceScatterFullSize, TwoDevices) {
  FUSESCOPE_NEED_DEVICES(devices, 2);
  check_full_size(2, devices);
}

TEST(ReduceScatterFullSize, FourDevices) {
  FUSESCOPE_NEED_DEVICES(devices, 4);
  check_full_size(4, devices);
}

// --- bit by bit across knobs ---------------------------------------------------------------------

struct Variation {
  std::string name;
  void (*apply)(Config&);
};

std::vector<Variation> single_knobs() {
  return {
      {"the base again", [](Config&) {}},
      {"row_order by_rank", [](Config& c) { c.row_order = RowOrder::by_rank; }},
      {"push_sms 0", [](Config& c) { c.push_sms = 0; }},
      {"push_sms 1", [](Config& c) { c.push_sms = 1; }},
      {"push_sms 100", [](Config& c) { c.push_sms = 100; }},
      {"pushers 1", [](Config& c) { c.pushers = 1; }},
      {"pushers 100", [](Config& c) { c.pushers = 100; }},
      {"rows_per_push 1", [](Config& c) { c.rows_per_push = 1; }},
      {"rows_per_push 7", [](Config& c) { c.rows_per_push = 7; }},
      {"rows_per_push 100",
       [](Config& c) {
         c.rows_per_push = 100;
         c.pushers = 1;
       }},
      {"not all hands", [](Config& c) { c.all_hands = false; }},
      {"watermark_chunks 7", [](Config& c) { c.watermark_chunks = 7; }},
      {"watermark_chunks 64", [](Config& c) { c.watermark_chunks = 64; }},
      {"tile m128n128", [](Config& c) { c.tile = TileShape::m128n128; }},
      {"no graph", [](Config& c) { c.graph = false; }},
      {"serial", [](Config& c) { c.form = LayerForm::serial; }},
      {"serial, no graph",
       [](Config& c) {
         c.form = LayerForm::serial;
         c.graph = false;
       }},
  };
}

// Every knob at once, drawn at random but the same ones each time.
Config mixed_knobs(std::uint64_t number) {
  Random random(91, number);
  const auto below = [&](std::uint64_t bound) { return static_cast<int>(random.below(bound)); };
  Config c;
  c.row_order = static_cast<RowOrder>(below(2));
  c.all_hands = below(3) != 0;
  c.push_sms = c.all_hands && below(3) == 0 ? 0 : 1 + below(100);
  c.rows_per_push = 1 + below(16);
  c.pushers = 1 + below(static_cast<std::uint64_t>(100 / c.rows_per_push));
  c.watermark_chunks = 1 + below(64);
  c.tile = static_cast<TileShape>(below(2));
  c.graph = below(3) != 0;
  return c;
}

void expect_same_outputs(int ranks, const std::vector<Device>& devices) {
  const Shape shape = make_shape(ranks, 301, 1024, 256);
  const std::array<std::uint64_t, 3> seeds = {8, 9, 10};
  Runner runner(shape, devices, {.seed = 8, .deadline_ns = kTestDeadlineNs});
  std::vector<Outputs> expected;
  for (const std::uint64_t seed : seeds) {
    runner.set_input(seed);
    ASSERT_EQ(checked_run(runner, Config{}), "");
    expected.push_back(read_outputs(runner));
  }
  std::vector<Config> configs;
  for (const Variation& variation : single_knobs()) {
    configs.emplace_back();
    variation.apply(configs.back());
  }
  for (std::uint64_t number = 0; number < 24; ++number) {
    configs.push_back(mixed_knobs(number));
  }
  for (const Config& wanted : configs) {
    const Config config = fitting(wanted, shape, devices);
    ASSERT_EQ(why_illegal(shape, config, limits_of(devices.front())), "") << named(config);
    runner.configure(config);
    for (std::size_t i = 0; i < seeds.size(); ++i) {
      runner.set_input(seeds[i]);
      runner.memory().poison();
      runner.run_once();
      EXPECT_EQ(first_difference(expected[i], read_outputs(runner)), "")
          << named(config) << ", input " << seeds[i];
    }
  }
}

TEST(ReduceScatterInvariance, OneDevice) {
  FUSESCOPE_NEED_DEVICES(devices, 1);
  expect_same_outputs(2, devices);
}

TEST(ReduceScatterInvariance, ThreeRanksOnOneDevice) {
  FUSESCOPE_NEED_DEVICES(devices, 1);
  expect_same_outputs(3, devices);
}

TEST(ReduceScatterInvariance, TwoDevices) {
  FUSESCOPE_NEED_DEVICES(devices, 2);
  expect_same_outputs(2, devices);
}

TEST(ReduceScatterInvariance, FourDevices) {
  FUSESCOPE_NEED_DEVICES(devices, 4);
  expect_same_outputs(4, devices);
}

TEST(ReduceScatterInvariance, FourRanksOnTwoDevices) {
  FUSESCOPE_NEED_DEVICES(devices, 2);
  expect_same_outputs(4, devices);
}

// The check itself can fail: these outputs belong to another input.
TEST(ReduceScatterCheck, SeesOutputsOfAnotherInput) {
  FUSESCOPE_NEED_DEVICES(devices, 1);
  Runner runner(make_shape(2, 65, 512, 64), devices, {.seed = 2, .deadline_ns = kTestDeadlineNs});
  ASSERT_EQ(checked_run(runner, Config{}), "");
  runner.set_input(3);
  EXPECT_GT(runner.output_error().relative, 1.0);
  runner.memory().poison();
  EXPECT_TRUE(std::isinf(runner.output_error().relative));
}

// --- back to back --------------------------------------------------------------------------------

constexpr std::uint64_t kInputs = 9;

void run_back_to_back(int ranks, const std::vector<Device>& devices) {
  Runner runner(make_shape(ranks, 65, 512, 64), devices,
                {.seed = 4, .deadline_ns = kTestDeadlineNs});
  std::vector<std::uint64_t> seeds;
  std::vector<Outputs> expected;
  for (std::uint64_t seed = 0; seed < kInputs; ++seed) {
    seeds.push_back(100 + seed);
    runner.set_input(seeds.back());
    ASSERT_EQ(checked_run(runner, Config{}), "");
    expected.push_back(read_outputs(runner));
  }
  // Inputs that gave the same outputs could not tell a stale buffer from a fresh one.
  for (std::size_t i = 1; i < expected.size(); ++i) {
    ASSERT_NE(first_difference(expected[i - 1], expected[i]), "");
  }
  std::vector<Config> configs = matrix_configs();
  for (std::size_t number = 0; number < configs.size(); ++number) {
    const Config& config = configs[number];
    SCOPED_TRACE(named(config));
    const int iterations = number == 0 ? 1000 : 200;
    runner.configure(config);
    runner.run_once();  // everything is loaded before nothing waits for the host any more
    const Staged staged(runner.memory(), row_order(config), seeds, iterations);
    runner.memory().poison();
    runner.run_back_to_back(staged);
    int wrong = 0;
    for (int i = 0; i < iterations && wrong < 5; ++i) {
      Outputs found{runner.memory().shape().hidden, {}};
      for (int r = 0; r < ranks; ++r) {
        found.by_rank.push_back(staged.read_output(r, i));
      }
      const std::string difference =
          first_difference(expected[static_cast<std::size_t>(i) % seeds.size()], found);
      EXPECT_EQ(difference, "") << "iteration " << i;
      wrong += !difference.empty();
    }
  }
}

class ReduceScatterBackToBack : public testing::TestWithParam<int> {};

TEST_P(ReduceScatterBackToBack, OneDevice) {
  FUSESCOPE_NEED_DEVICES(devices, 1);
  run_back_to_back(GetParam(), devices);
}

TEST_P(ReduceScatterBackToBack, TwoDevices) {
  FUSESCOPE_NEED_DEVICES(devices, 2);
  run_back_to_back(GetParam(), devices);
}

TEST_P(ReduceScatterBackToBack, FourDevices) {
  FUSESCOPE_NEED_DEVICES(devices, 4);
  run_back_to_back(GetParam(), devices);
}

INSTANTIATE_TEST_SUITE_P(Ranks, ReduceScatterBackToBack, testing::Values(1, 2, 3, 4));

}  // namespace
}  // namespace fusescope::engine::cuda::projection::test
