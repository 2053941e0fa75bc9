// Outputs are bitwise the same whatever the knobs, because every sum has a fixed order. One table of
// variations; a failure names the two configs and the first element that differs.
#include <array>
#include <functional>

#include "base/random.hpp"
#include "engine/cuda/cuda_test_support.hpp"

namespace fusescope::engine::cuda::test {
namespace {

struct Variation {
  std::string name;
  std::function<void(Config&)> apply;
};

std::vector<Variation> single_knobs() {
  return {
      {"again", [](Config&) {}},
      {"dispatch gather", [](Config& c) { c.dispatch = Dispatch::gather; }},
      {"dispatch gather, dispatch_comm_sms 0",
       [](Config& c) {
         c.dispatch = Dispatch::gather;
         c.dispatch_comm_sms = 0;
       }},
      {"dispatch gather, link capped",
       [](Config& c) {
         c.dispatch = Dispatch::gather;
         c.link_gbps = 20;
       }},
      {"dispatch push",
       [](Config& c) {
         c.dispatch = Dispatch::push;
         c.schedule = ScheduleSite::fused;
       }},
      {"dispatch push, dispatch_comm_sms 0",
       [](Config& c) {
         c.dispatch = Dispatch::push;
         c.schedule = ScheduleSite::fused;
         c.dispatch_comm_sms = 0;
       }},
      {"dispatch push, tile 160x256, where it may be",
       [](Config& c) {
         c.tile = TileShape::m160n256;
         c.dispatch = c.activation == Activation::fused ? Dispatch::push : Dispatch::scatter;
         c.schedule = ScheduleSite::fused;
       }},
      {"dispatch gather, tile 160x256, where it may be",
       [](Config& c) {
         c.tile = TileShape::m160n256;
         c.dispatch = c.activation == Activation::fused ? Dispatch::gather : Dispatch::scatter;
       }},
      {"dispatch_comm_sms 0", [](Config& c) { c.dispatch_comm_sms = 0; }},
      {"dispatch_comm_sms 1", [](Config& c) { c.dispatch_comm_sms = 1; }},
      {"dispatch_comm_sms 100", [](Config& c) { c.dispatch_comm_sms = 100; }},
      {"combine_comm_sms 0", [](Config& c) { c.combine_comm_sms = 0; }},
      {"combine_comm_sms 1", [](Config& c) { c.combine_comm_sms = 1; }},
      {"combine_comm_sms 90", [](Config& c) { c.combine_comm_sms = 90; }},
      {"tokens_per_block 1", [](Config& c) { c.tokens_per_block = 1; }},
      {"tokens_per_block 24", [](Config& c) { c.tokens_per_block = 24; }},
      {"pull_order by_token", [](Config& c) { c.pull_order = PullOrder::by_token; }},
      {"job_order by_token", [](Config& c) { c.job_order = JobOrder::by_token; }},
      {"slot_order interleave", [](Config& c) { c.slot_order = SlotOrder::interleave_sources; }},
      {"slot_order rotate", [](Config& c) { c.slot_order = SlotOrder::rotate_from_self; }},
      {"block per job",
       [](Config& c) {
         c.combine = Combine::block_per_job;
         c.all_hands = false;
       }},
      {"not all hands", [](Config& c) { c.all_hands = false; }},
      {"watermark_chunks 7", [](Config& c) { c.watermark_chunks = 7; }},
      {"watermark_chunks 64", [](Config& c) { c.watermark_chunks = 64; }},
      {"tile m128n128", [](Config& c) { c.tile = TileShape::m128n128; }},
      {"schedule host", [](Config& c) { c.schedule = ScheduleSite::host; }},
      {"schedule device", [](Config& c) { c.schedule = ScheduleSite::device; }},
      {"schedule fused", [](Config& c) { c.schedule = ScheduleSite::fused; }},
      {"tile_counter kernel_2", [](Config& c) { c.tile_counter = TileCounter::kernel_2; }},
      {"tile_counter both", [](Config& c) { c.tile_counter = TileCounter::both; }},
      {"launch programmatic, where it may be",
       [](Config& c) {
         c.launch =
             c.activation == Activation::fused ? LaunchOrder::programmatic : LaunchOrder::stream;
       }},
      {"no graph", [](Config& c) { c.graph = false; }},
      {"link capped", [](Config& c) { c.link_gbps = 20; }},
      {"late token",
       [](Config& c) {
         c.inject = {InjectPoint::token, 200'000, -1, 3};
       }},
      {"late source rank",
       [](Config& c) {
         c.inject = {InjectPoint::source_rank, 3'000, 1, -1};
       }},
      {"serial", [](Config& c) { c.form = LayerForm::serial; }},
      {"serial, no graph",
       [](Config& c) {
         c.form = LayerForm::serial;
         c.graph = false;
       }},
  };
}

// Every knob at once, drawn at random but the same ones each time.
void mix_knobs(Config& c, std::uint64_t number) {
  Random random(77, number);
  const auto below = [&](std::uint64_t bound) { return static_cast<int>(random.below(bound)); };
  c.combine = below(3) == 0 ? Combine::block_per_job : Combine::dispenser;
  c.all_hands = c.combine == Combine::dispenser && below(2) == 0;
  c.dispatch_comm_sms = below(3) == 0 ? 0 : 1 + below(60);
  c.combine_comm_sms = c.all_hands && below(2) == 0 ? 0 : 1 + below(60);
  c.tokens_per_block = 1 + below(24);
  c.pull_order = static_cast<PullOrder>(below(2));
  c.job_order = static_cast<JobOrder>(below(2));
  c.slot_order = static_cast<SlotOrder>(below(3));
  c.watermark_chunks = 1 + below(64);
  c.tile = tested_tile(below(kTilesTested));
  constexpr std::array kSites = {ScheduleSite::host, ScheduleSite::device, ScheduleSite::fused,
                                 ScheduleSite::fused};
  c.schedule = kSites[static_cast<std::size_t>(below(4))];
  c.graph = below(3) != 0;
  c.tile_counter = static_cast<TileCounter>(below(3));
  const bool may_overlap = c.activation == Activation::fused && c.combine == Combine::dispenser;
  c.launch = may_overlap && below(3) != 0 ? LaunchOrder::programmatic : LaunchOrder::stream;
  c.dispatch = static_cast<Dispatch>(below(2));
  if (is_by_row_steps(c.tile)) {
    c.dispatch = Dispatch::scatter;
  }
}

std::vector<Variation> variations() {
  constexpr std::uint64_t kMixes = 16;
  std::vector<Variation> all = single_knobs();
  for (const TileShape tile : kTilesByRowSteps) {
    all.push_back({"tile " + tile_text(tile), [tile](Config& c) { c.tile = tile; }});
    for (const int head : {0, 50}) {
      all.push_back(
          {"tile " + tile_text(tile) + ", head " + std::to_string(head) + ", where it may be",
           [tile, head](Config& c) {
             c.tile = tile;
             c.dispatch_comm_sms = 0;
             c.dispatch_head = c.activation == Activation::fused ? head : 100;
           }});
    }
    all.push_back({"tile " + tile_text(tile) + ", serial", [tile](Config& c) {
                     c.tile = tile;
                     c.form = LayerForm::serial;
                   }});
  }
  for (std::uint64_t number = 0; number < kMixes; ++number) {
    all.push_back({"mix " + std::to_string(number), [number](Config& c) { mix_knobs(c, number); }});
  }
  return all;
}

Shape shape_of(int ranks) {
  return make_shape(ranks, 301, 1024, 16, 4, 256);
}

// Each config runs several routings in turn, so that it also meets what the routing before left.
void expect_same_outputs(int ranks, const std::vector<Device>& devices, const Config& base) {
  const Shape shape = shape_of(ranks);
  std::vector<Problem> problems;
  for (const char* routing : {"zipf", "uniform", "empty"}) {
    problems.push_back(make_test_problem(shape, routing, 21));
  }
  LayerRunner runner(problems.front(), devices, {.seed = 8, .deadline_ns = kTestDeadlineNs});
  std::vector<Outputs> expected;
  for (const Problem& problem : problems) {
    runner.set_routing(problem.routing);
    ASSERT_EQ(checked_run(runner, base), "") << describe(problem);
    expected.push_back(read_outputs(runner));
  }
  for (const Variation& variation : variations()) {
    Config config = base;
    variation.apply(config);
    config = as_built(config, devices);
    ASSERT_EQ(why_illegal_on_device(problems.front(), config, limits_of(devices.front())), "")
        << variation.name;
    runner.configure(config);
    for (std::size_t i = 0; i < problems.size(); ++i) {
      runner.set_routing(problems[i].routing);
      runner.memory().poison();
      runner.run_once();
      EXPECT_EQ(first_difference(expected[i], read_outputs(runner)), "")
          << named(base) << " and, by variation \"" << variation.name << "\", " << named(config)
          << "; " << describe(problems[i]);
    }
  }
}

Config fused_activation() {
  Config config;
  config.activation = Activation::fused;
  return config;
}

TEST(Invariance, KnobsOnOneDevice) {
  FUSESCOPE_NEED_DEVICES(devices, 1);
  expect_same_outputs(2, devices, Config{});
}

TEST(Invariance, KnobsWithFusedActivation) {
  FUSESCOPE_NEED_DEVICES(devices, 1);
  expect_same_outputs(2, devices, fused_activation());
}

TEST(Invariance, KnobsWithThreeRanksOnOneDevice) {
  FUSESCOPE_NEED_DEVICES(devices, 1);
  expect_same_outputs(3, devices, Config{});
}

TEST(Invariance, KnobsOnTwoDevices) {
  FUSESCOPE_NEED_DEVICES(devices, 2);
  expect_same_outputs(2, devices, Config{});
}

TEST(Invariance, KnobsWithFusedActivationOnTwoDevices) {
  FUSESCOPE_NEED_DEVICES(devices, 2);
  expect_same_outputs(2, devices, fused_activation());
}

TEST(Invariance, KnobsWithFourRanksOnTwoDevices) {
  FUSESCOPE_NEED_DEVICES(devices, 2);
  expect_same_outputs(4, devices, Config{});
}

TEST(Invariance, KnobsOnFourDevices) {
  FUSESCOPE_NEED_DEVICES(devices, 4);
  expect_same_outputs(4, devices, Config{});
}

TEST(Invariance, KnobsWithFusedActivationOnFourDevices) {
  FUSESCOPE_NEED_DEVICES(devices, 4);
  expect_same_outputs(4, devices, fused_activation());
}

// Needs no GPU, so that an illegal variation is found before one is there.
TEST(Invariance, EveryVariationIsLegal) {
  const Device h200{0, "NVIDIA H200", 132, 232448, ""};
  const Problem problem = make_test_problem(shape_of(2), "uniform", 21);
  for (const Config& base : {Config{}, fused_activation()}) {
    for (const Variation& variation : variations()) {
      Config config = base;
      variation.apply(config);
      EXPECT_EQ(why_illegal_on_device(problem, config, limits_of(h200)), "") << variation.name;
    }
  }
}

// The comparison itself can fail, and says where.
TEST(Invariance, NamesTheFirstElementThatDiffers) {
  Outputs expected{4, {{1, 2, 3, 4, 5, 6, 7, 8}, {1, 2, 3, 4, 5, 6, 7, 8}}};
  Outputs found = expected;
  EXPECT_EQ(first_difference(expected, found), "");
  found.by_rank[1][6] = 0x3F80;
  found.by_rank[1][7] = 0;
  EXPECT_EQ(first_difference(expected, found), "rank 1 token 1 column 2: 0x0007 and 0x3f80");
}

}  // namespace
}  // namespace fusescope::engine::cuda::test
