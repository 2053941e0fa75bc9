// End to end: experts x routing x K, odd token counts, hidden sizes from 512 to 7168, fused and serial,
// ranks co-located and on several devices; NaN-poisoned buffers, fresh random inputs for each case.
#include <algorithm>
#include <array>
#include <cmath>
#include <map>

#include "base/random.hpp"
#include "engine/cuda/cuda_test_support.hpp"

namespace fusescope::engine::cuda::test {
namespace {

constexpr std::array kHidden = {512, 1024, 2048, 520, 4096, 7168};
constexpr std::array kIntermediate = {128, 256, 72, 384, 64, 192};

// A seed with which every hidden size meets every kind of case; the test Matrix holds it to that.
constexpr std::uint64_t kMix = 151;

// A different mix of knobs for each case, so that the matrix covers their combinations thinly. Each
// knob is drawn on its own: none goes with another, nor with the hidden size, which goes round. (But for tiles
// that do not gather.)
Config config_of_case(int number) {
  Random random(kMix, static_cast<std::uint64_t>(number));
  const auto below = [&](std::uint64_t bound) { return static_cast<int>(random.below(bound)); };
  const auto one_in = [&](std::uint64_t bound) { return below(bound) == 0; };
  Config config;
  config.form = one_in(5) ? LayerForm::serial : LayerForm::fused;
  config.combine = one_in(3) ? Combine::block_per_job : Combine::dispenser;
  config.all_hands = one_in(2) && config.combine == Combine::dispenser;
  config.dispatch_comm_sms = one_in(4) ? 0 : 1 + below(40);  // 0: fetch first
  config.combine_comm_sms = one_in(2) && config.all_hands ? 0 : 1 + below(40);
  config.tokens_per_block = 1 + below(12);
  config.activation = one_in(2) ? Activation::fused : Activation::separate;
  constexpr int kByRowSteps = static_cast<int>(kTilesByRowSteps.size());
  const int tile = below(4 * kByRowSteps);  // a quarter are of 128 columns, a quarter by row steps
  config.tile = tile < kByRowSteps       ? TileShape::m128n128
                : tile < 2 * kByRowSteps ? tested_tile(2 + tile - kByRowSteps)
                                         : TileShape::automatic;
  config.slot_order = static_cast<SlotOrder>(below(3));
  config.watermark_chunks = 1 + below(4);
  config.graph = !one_in(4);
  constexpr std::array kSites = {ScheduleSite::host, ScheduleSite::device, ScheduleSite::fused,
                                 ScheduleSite::fused, ScheduleSite::fused};
  config.schedule = kSites[static_cast<std::size_t>(below(5))];
  config.tile_counter = static_cast<TileCounter>(below(3));
  if (config.activation == Activation::fused && config.combine == Combine::dispenser) {
    config.launch = static_cast<LaunchOrder>(below(2));
  }
  const bool may_gather = !is_by_row_steps(config.tile) || (config.tile == TileShape::m160n256 &&
                                                            config.activation == Activation::fused);
  config.dispatch = one_in(2) && may_gather ? Dispatch::gather : Dispatch::scatter;
  const int head = below(101);
  if (is_by_row_steps(config.tile) && config.activation == Activation::fused && one_in(2)) {
    config.dispatch = Dispatch::scatter;
    config.dispatch_comm_sms = 0;
    config.dispatch_head = head;
  }
  return config;
}

// Rows are gathered in pieces of 64. Where the prologue may push them, it does in half of the cases.
Config config_of_case(int number, const Shape& shape) {
  Config config = config_of_case(number);
  if (shape.hidden % 64 != 0) {
    config.dispatch = Dispatch::scatter;
  }
  if (config.dispatch == Dispatch::gather && config.schedule == ScheduleSite::fused &&
      shape.ranks > 1 && config.tokens_per_block % 2 == 0) {
    config.dispatch = Dispatch::push;
  }
  return config;
}

void expect_right(const Problem& problem, const std::vector<Device>& devices, const Config& wanted,
                  std::uint64_t seed) {
  const Config config = as_built(wanted, devices);
  ASSERT_EQ(why_illegal_on_device(problem, config, limits_of(devices.front())), "");
  LayerRunner runner(problem, devices, {.seed = seed, .deadline_ns = kTestDeadlineNs});
  EXPECT_EQ(checked_run(runner, config), "") << describe(problem) << "\n" << describe(config);
}

struct Case {
  int number;
  Shape shape;
  std::string routing;
};

std::vector<Case> cases_of(int experts, int ranks) {
  std::vector<Case> cases;
  int number = experts;
  for (const std::string& routing : matrix_routings()) {
    for (const int topk : {1, 2, 4, 6, 8}) {
      if (topk > experts) {
        continue;
      }
      ++number;
      const auto pick = static_cast<std::size_t>(number) % kHidden.size();
      const int tokens = 33 + 2 * (number % 40);
      cases.push_back({number,
                       make_shape(ranks, tokens, kHidden[pick], experts, topk, kIntermediate[pick]),
                       routing});
    }
  }
  return cases;
}

void run_experts(int experts, int ranks, const std::vector<Device>& devices) {
  for (const Case& c : cases_of(experts, ranks)) {
    const auto seed = static_cast<std::uint64_t>(c.number);
    expect_right(make_test_problem(c.shape, c.routing, seed), devices,
                 config_of_case(c.number, c.shape), seed);
  }
}

constexpr std::array kExperts = {4, 8, 32, 64, 128, 256};

// Needs no GPU: that the matrix is as wide as it is meant to be, and legal throughout.
TEST(Matrix, EveryHiddenSizeMeetsEveryKindOfCase) {
  struct Met {
    int pushed = 0, serial = 0, all_hands = 0, few_hands = 0, per_job = 0, fetches_first = 0,
        no_combine_sms = 0, fused_activation = 0, no_graph = 0, host_schedule = 0;
    int slot_orders[3] = {};
    std::map<TileShape, int> tiles;
  };
  const Device h200{0, "NVIDIA H200", 132, 232448, ""};
  std::map<int, Met> met;
  for (const int experts : kExperts) {
    for (const Case& c : cases_of(experts, 2)) {
      const Config config = config_of_case(c.number, c.shape);
      EXPECT_EQ(
          why_illegal_on_device(make_test_problem(c.shape, c.routing, 1), config, limits_of(h200)),
          "")
          << c.number;
      Met& m = met[c.shape.hidden];
      if (config.form == LayerForm::serial) {
        ++m.serial;
        continue;
      }
      m.pushed += config.dispatch == Dispatch::push;
      m.all_hands += config.all_hands;
      m.few_hands += config.combine == Combine::dispenser && !config.all_hands;
      m.per_job += config.combine == Combine::block_per_job;
      m.fetches_first += config.dispatch_comm_sms == 0;
      m.no_combine_sms += config.combine_comm_sms == 0;
      m.fused_activation += config.activation == Activation::fused;
      ++m.tiles[config.tile];
      m.no_graph += !config.graph;
      m.host_schedule += config.schedule == ScheduleSite::host;
      ++m.slot_orders[static_cast<int>(config.slot_order)];
    }
  }
  EXPECT_EQ(met.size(), kHidden.size());
  for (auto& [hidden, m] : met) {
    for (const int count :
         {m.serial, m.all_hands, m.few_hands, m.per_job, m.fetches_first, m.no_combine_sms,
          m.fused_activation, m.tiles[TileShape::m128n128], m.no_graph, m.host_schedule,
          m.slot_orders[0], m.slot_orders[1], m.slot_orders[2]}) {
      EXPECT_GE(count, 2) << "H=" << hidden;
    }
    EXPECT_GE(m.pushed, hidden % 64 == 0 ? 2 : 0) << "H=" << hidden;
    for (const TileShape tile : kTilesByRowSteps) {
      EXPECT_GE(m.tiles[tile], 2) << "H=" << hidden << ", tile " << tile_text(tile);
    }
  }
}

TEST(Matrix, EveryCaseIsLegalForFourRanks) {
  const Device h200{0, "NVIDIA H200", 132, 232448, ""};
  for (const int experts : kExperts) {
    for (const Case& c : cases_of(experts, 4)) {
      EXPECT_EQ(why_illegal_on_device(make_test_problem(c.shape, c.routing, 1),
                                      config_of_case(c.number, c.shape), limits_of(h200)),
                "")
          << c.number;
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

TEST_P(LayerMatrix, FourDevices) {
  FUSESCOPE_NEED_DEVICES(devices, 4);
  run_experts(GetParam(), 4, devices);
}

INSTANTIATE_TEST_SUITE_P(Experts, LayerMatrix, testing::ValuesIn(kExperts));

class CoLocated : public testing::TestWithParam<int> {};

TEST_P(CoLocated, OneDevice) {
  FUSESCOPE_NEED_DEVICES(devices, 1);
  const int ranks = GetParam();
  for (int number = 0; number < 12; ++number) {
    const Shape shape = make_shape(ranks, 45, 1024, 16, 4, 128);
    expect_right(make_test_problem(shape, "uniform", 7), devices, config_of_case(number), 11);
  }
}

INSTANTIATE_TEST_SUITE_P(Ranks, CoLocated, testing::Values(1, 2, 3, 4, 8));

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
  EXPECT_EQ(checked_run(runner, Config{}), "");
  const std::uint64_t right = runner.output_checksum();
  runner.set_routing(make_test_problem(shape, "uniform", 2).routing);
  EXPECT_GT(runner.relative_error(), 0.1);
  runner.memory().poison();
  EXPECT_TRUE(std::isinf(runner.relative_error()));
  EXPECT_NE(runner.output_checksum(), right);
}

// The seed's work per rank, less a token.
void run_seed_shape(int ranks, int tokens_per_rank, const std::vector<Device>& devices) {
  const Problem problem =
      make_test_problem(make_shape(ranks, tokens_per_rank, 4096, 64, 8, 768), "uniform", 3);
  LayerRunner runner(problem, devices, {.seed = 5, .deadline_ns = kTestDeadlineNs});
  Config config;
  EXPECT_EQ(checked_run(runner, config), "");
  config.activation = Activation::fused;
  EXPECT_EQ(checked_run(runner, config), "");
  config.form = LayerForm::serial;
  EXPECT_EQ(checked_run(runner, config), "");
}

TEST(FullSize, SeedShape) {
  FUSESCOPE_NEED_DEVICES(devices, 1);
  std::vector<Device> all = usable_devices();
  all.resize(std::min<std::size_t>(all.size(), 2));
  enable_peer_access(all);
  run_seed_shape(2, 1023, all);
}

TEST(FullSize, SeedShapeOnFourDevices) {
  FUSESCOPE_NEED_DEVICES(devices, 4);
  run_seed_shape(4, 511, devices);
}

TEST(FullSize, LargeHidden) {
  FUSESCOPE_NEED_DEVICES(devices, 1);
  const Problem problem = make_test_problem(make_shape(2, 255, 7168, 64, 8, 256), "zipf", 3);
  LayerRunner runner(problem, devices, {.seed = 5, .deadline_ns = kTestDeadlineNs});
  EXPECT_EQ(checked_run(runner, Config{}), "");
}

}  // namespace
}  // namespace fusescope::engine::cuda::test
