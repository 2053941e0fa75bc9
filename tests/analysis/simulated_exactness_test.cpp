// Every view adds up on what the simulator records: every config of a sweep, and random small problems.

#include <gtest/gtest.h>

#include <random>
#include <string>

#include "analysis/summary.hpp"
#include "base/error.hpp"
#include "exact.hpp"
#include "simulated.hpp"
#include "timeline/dependencies.hpp"

namespace fusescope::analysis {
namespace {

using timeline::Timeline;

void expect_attributed(const Problem& problem, const Config& config, const Timeline& timeline) {
  const std::string what = describe(problem) + ": " + describe(config);
  expect_exact(timeline, what.c_str());
  SCOPED_TRACE(what);
  EXPECT_EQ(timeline::check(timeline), "");
  const Attribution attribution = attribute(timeline);
  EXPECT_EQ(attribution.refusal, "");
  EXPECT_TRUE(attribution.caveats.empty())
      << (attribution.caveats.empty() ? "" : attribution.caveats.front());
  EXPECT_EQ(attribution.path.unexplained_ns, 0);
}

void expect_attributed(const Problem& problem, const Config& config) {
  expect_attributed(problem, config, simulated(problem, config));
}

TEST(SimulatedExactness, OnEveryConfigOfASweep) {
  const Problem problem = seed_problem("zipf:1.0");
  Config config;
  config.form = LayerForm::serial;
  expect_attributed(problem, config);
  config.form = LayerForm::fused;
  int configs = 1;
  for (const int comm_sms : {4, 8, 16, 24}) {
    for (const int tokens_per_block : {4, 12}) {
      for (const bool ordered : {true, false}) {
        for (const int form : {0, 1, 2}) {
          config.dispatch_comm_sms = config.combine_comm_sms = comm_sms;
          config.tokens_per_block = tokens_per_block;
          config.pull_order = ordered ? PullOrder::by_slot : PullOrder::by_token;
          config.job_order = ordered ? JobOrder::by_ready : JobOrder::by_token;
          config.combine = form == 0 ? Combine::block_per_job : Combine::dispenser;
          config.all_hands = form == 2;
          expect_attributed(problem, config);
          ASSERT_FALSE(HasFatalFailure());
          ++configs;
        }
      }
    }
  }
  EXPECT_GE(configs, 49);
}

int pick(std::mt19937_64& random, int least, int most) {
  return std::uniform_int_distribution<int>(least, most)(random);
}

Problem random_problem(std::mt19937_64& random) {
  Shape shape;
  shape.name = "random";
  shape.source = "a test";
  shape.ranks = pick(random, 1, 4);
  shape.tokens_per_rank = pick(random, 1, 40);
  shape.hidden = 256 * pick(random, 1, 4);
  shape.experts = pick(random, 1, 12);
  shape.topk = pick(random, 1, std::min(shape.experts, 4));
  shape.intermediate = 128 * pick(random, 1, 3);
  const char* routings[] = {"uniform", "zipf:1.5", "balanced"};
  return make_problem(shape, parse_routing(routings[pick(random, 0, 2)]));
}

Config random_config(std::mt19937_64& random) {
  const auto coin = [&] { return pick(random, 0, 1) == 1; };
  Config config;
  config.form = pick(random, 0, 9) == 0 ? LayerForm::serial : LayerForm::fused;
  config.dispatch_comm_sms = pick(random, 1, 40);
  config.combine_comm_sms = pick(random, 1, 40);
  config.tokens_per_block = pick(random, 1, 12);
  config.pull_order = coin() ? PullOrder::by_slot : PullOrder::by_token;
  config.job_order = coin() ? JobOrder::by_ready : JobOrder::by_token;
  config.slot_order = static_cast<SlotOrder>(pick(random, 0, 2));
  config.combine = pick(random, 0, 2) == 0 ? Combine::block_per_job : Combine::dispenser;
  config.all_hands = config.combine == Combine::dispenser && coin();
  config.watermark_chunks = pick(random, 1, 3);
  config.activation = coin() ? Activation::separate : Activation::fused;
  config.tile = coin() ? TileShape::automatic : TileShape::m128n128;
  config.graph = coin();
  config.tile_counter = static_cast<TileCounter>(pick(random, 0, 2));
  config.launch = coin() ? LaunchOrder::programmatic : LaunchOrder::stream;
  return config;
}

TEST(SimulatedExactness, OnRandomSmallProblems) {
  std::mt19937_64 random(5);
  int ran = 0;
  int overlapped = 0;
  for (int round = 0; round < 300; ++round) {
    Problem problem;
    const Config config = random_config(random);
    try {
      problem = random_problem(random);
      simulated(problem, config);
    } catch (const InputError&) {
      continue;  // an illegal pair
    }
    expect_attributed(problem, config);
    ASSERT_FALSE(HasFatalFailure());
    ++ran;
    overlapped += config.launch == LaunchOrder::programmatic;
  }
  EXPECT_GE(ran, 100);
  EXPECT_GE(overlapped, 30);
}

// Experts of several row blocks, in tiles that wait for and complete more than one.
TEST(SimulatedExactness, OnTilesOfSeveralRowBlocks) {
  std::mt19937_64 random(6);
  int ran = 0;
  int merged = 0;
  int opened_by_another = 0;
  int beside_tiles = 0;
  for (int round = 0; round < 120; ++round) {
    Config config = random_config(random);
    config.tile = pick(random, 0, 1) == 0 ? TileShape::m160n256 : TileShape::m288n128;
    if (pick(random, 0, 2) == 0) {
      config.dispatch_comm_sms = 0;
      config.dispatch_head = pick(random, 0, 99);
      config.activation = Activation::fused;
    }
    Problem problem;
    Timeline timeline;
    try {
      problem = random_problem(random);
      Shape shape = problem.shape;
      shape.tokens_per_rank = pick(random, 64, 150);
      shape.experts = pick(random, 1, 4);
      shape.topk = pick(random, 1, std::min(shape.experts, 3));
      problem = make_problem(shape, problem.routing_spec);
      timeline = simulated_on_h200(problem, config);
    } catch (const InputError&) {
      continue;  // an illegal pair
    }
    expect_attributed(problem, config, timeline);
    ASSERT_FALSE(HasFatalFailure());
    ++ran;
    beside_tiles += config.form == LayerForm::fused && config.dispatch_head < 100;
    const timeline::Dependencies dependencies(timeline);
    for (const timeline::Event& event : timeline.events) {
      const int rank = timeline.tracks[event.track].rank;
      merged += event.kind == timeline::Kind::epilogue &&
                timeline.wiring.last_of_tile(rank, event.row_block) > event.row_block;
      opened_by_another += event.kind == timeline::Kind::gate_wait &&
                           dependencies.last_to_open(rank, event.row_block) != event.row_block;
    }
  }
  EXPECT_GE(ran, 50);
  EXPECT_GE(merged, 200);
  EXPECT_GE(opened_by_another, 50);
  EXPECT_GE(beside_tiles, 20);
}

}  // namespace
}  // namespace fusescope::analysis
