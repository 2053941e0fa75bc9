// The protocol holds: every timeline keeps the event contract, and no interleaving of steps gets stuck,
// claims a job twice, overshoots a counter or loses a watermark.
#include <gtest/gtest.h>

#include <random>

#include "sim_run.hpp"

namespace fusescope::engine::sim {
namespace {

std::vector<Config> varied_configs() {
  std::vector<Config> configs;
  for (const Combine combine : {Combine::dispenser, Combine::block_per_job}) {
    for (const bool ordered : {true, false}) {
      for (const SlotOrder slot_order :
           {SlotOrder::by_token, SlotOrder::interleave_sources, SlotOrder::rotate_from_self}) {
        Config config;
        config.combine = combine;
        config.all_hands = combine == Combine::dispenser && ordered;
        config.pull_order = ordered ? PullOrder::by_slot : PullOrder::by_token;
        config.job_order = ordered ? JobOrder::by_ready : JobOrder::by_token;
        config.slot_order = slot_order;
        config.watermark_chunks = ordered ? 3 : 1;
        config.activation = ordered ? Activation::separate : Activation::fused;
        config.tile = ordered ? TileShape::m128n256 : TileShape::m128n128;
        config.dispatch_comm_sms = ordered ? 5 : 2;
        config.combine_comm_sms = ordered ? 0 : 3;
        if (combine == Combine::block_per_job) {
          config.combine_comm_sms = 4;
        }
        configs.push_back(config);
      }
    }
  }
  Config serial;
  serial.form = LayerForm::serial;
  configs.push_back(serial);
  return configs;
}

// check() needs the stream's facts that the engine stamps.
std::string fault_of(timeline::Timeline timeline, const Config& config, const Profile& profile) {
  timeline.meta.sms = static_cast<int>(profile.sms);
  timeline.meta.serial = config.form == LayerForm::serial;
  return check(timeline);
}

TEST(Protocol, EveryTimelineKeepsTheEventContract) {
  for (const std::string& name : list_profiles()) {
    const Profile profile = load_profile(name);
    for (const char* routing : {"uniform", "zipf:1.5", "hot:2,0.6", "balanced"}) {
      const Problem problem = problem_of(odd_shape(), routing);
      for (const Config& config : varied_configs()) {
        timeline::Timeline timeline = timeline_of(problem, config, profile);
        EXPECT_EQ(fault_of(timeline, config, profile), "") << routing << " " << describe(config);
        timeline::Timeline sorted = timeline;
        timeline::sort_events(sorted);
        EXPECT_TRUE(sorted == timeline) << "events are not sorted as they come";
      }
    }
  }
}

TEST(Protocol, SeedLayerKeepsTheEventContract) {
  const Profile profile = load_profile(kSeedProfile);
  for (const char* routing : {"uniform", "zipf:1.0"}) {
    const Problem problem = problem_of("seed-tp4", routing);
    for (const Config& config : {Config{}, varied_configs().front(), varied_configs().back()}) {
      EXPECT_EQ(fault_of(timeline_of(problem, config, profile), config, profile), "");
    }
  }
}

TEST(Protocol, StudiesKeepTheEventContract) {
  const Profile profile = load_profile(kSeedProfile);
  const Problem problem = problem_of(odd_shape(), "uniform");
  for (const Study study :
       {Study::compute_all, Study::compute_split, Study::gates_open, Study::ideal_order}) {
    Config config;
    config.study = study;
    EXPECT_EQ(fault_of(timeline_of(problem, config, profile), config, profile), "");
  }
}

std::vector<Config> merging_configs() {
  std::vector<Config> configs;
  for (const TileShape tile : {TileShape::m160n256, TileShape::m288n128}) {
    for (const LaunchOrder launch : {LaunchOrder::stream, LaunchOrder::programmatic}) {
      Config config;
      config.tile = tile;
      config.launch = launch;
      config.activation = Activation::fused;
      config.tile_counter = TileCounter::both;
      configs.push_back(config);
      config.dispatch_comm_sms = 0;
      for (const int head : {0, 40, 100}) {
        config.dispatch_head = head;
        configs.push_back(config);
      }
      if (tile == TileShape::m160n256) {
        config.dispatch = Dispatch::gather;
        configs.push_back(config);
      }
    }
    Config serial;
    serial.form = LayerForm::serial;
    serial.tile = tile;
    configs.push_back(serial);
  }
  return configs;
}

TEST(Protocol, TilesOfSeveralRowBlocksKeepTheEventContract) {
  const Profile profile = load_profile("h200-nvlink");
  int merged = 0;
  for (const char* routing : {"uniform", "zipf:1.5", "hot:2,0.6", "balanced"}) {
    const Problem problem = problem_of(long_experts(), routing);
    for (const Config& config : merging_configs()) {
      const timeline::Timeline timeline = timeline_of(problem, config, profile);
      EXPECT_EQ(fault_of(timeline, config, profile), "") << routing << " " << describe(config);
      long long row_tiles = 0;
      for (int rank = 0; rank < problem.shape.ranks; ++rank) {
        row_tiles += timeline.wiring.row_tiles(rank);
      }
      const auto row_blocks =
          static_cast<long long>(timeline.wiring.expert_of_row_block.front().size());
      merged += row_tiles < problem.shape.ranks * row_blocks;
      if (config.form == LayerForm::fused) {
        EXPECT_EQ(count_of(timeline, Kind::mainloop),
                  row_tiles * (timeline.wiring.n_tiles_1 + timeline.wiring.n_tiles_2));
        EXPECT_EQ(count_of(timeline, Kind::arrive),
                  static_cast<long long>(problem.shape.ranks) * problem.shape.tokens());
      }
    }
  }
  EXPECT_GE(merged, 12);
}

TEST(Protocol, EveryTokenAndTileIsDoneOnce) {
  const Problem problem = problem_of(odd_shape(), "zipf:1.0");
  Config config;
  config.watermark_chunks = 4;
  const timeline::Timeline timeline = timeline_of(problem, config, load_profile(kSeedProfile));
  const long long rows = 3LL * problem.shape.tokens();  // on each of three ranks
  for (const Kind kind :
       {Kind::pull, Kind::scatter, Kind::arrive, Kind::claim, Kind::sum, Kind::push, Kind::elect}) {
    EXPECT_EQ(count_of(timeline, kind), rows) << name(kind);
  }
  EXPECT_EQ(count_of(timeline, Kind::watermark), 3 * 3 * 4);
  const long long row_blocks =
      static_cast<long long>(timeline.wiring.expert_of_row_block.front().size());
  EXPECT_EQ(count_of(timeline, Kind::mainloop),
            3 * row_blocks * (timeline.wiring.n_tiles_1 + timeline.wiring.n_tiles_2));
}

struct RandomChooser : StepChooser {
  explicit RandomChooser(std::uint64_t seed) : random(seed) {}
  std::size_t choose(std::size_t pending) override { return random() % pending; }
  std::mt19937_64 random;
};

TEST(Protocol, HoldsUnderRandomInterleavings) {
  const Profile profile = load_profile(kSeedProfile);
  const Problem problem = problem_of(odd_shape(), "zipf:1.0");
  for (const Config& config : varied_configs()) {
    const std::vector<ScheduleTables> tables = tables_for(problem, config);
    for (std::uint64_t seed = 0; seed < 10; ++seed) {
      RandomChooser chooser(seed);
      EXPECT_NO_THROW(simulate(problem, config, profile, tables, 1, false, &chooser))
          << describe(config) << " interleaving " << seed;
    }
  }
}

TEST(Protocol, TilesOfSeveralRowBlocksHoldUnderRandomInterleavings) {
  const Profile profile = load_profile("h200-nvlink");
  const Problem problem = problem_of(long_experts(), "zipf:1.0");
  for (const Config& config : merging_configs()) {
    const std::vector<ScheduleTables> tables = tables_for(problem, config);
    for (std::uint64_t seed = 0; seed < 5; ++seed) {
      RandomChooser chooser(seed);
      EXPECT_NO_THROW(simulate(problem, config, profile, tables, 1, false, &chooser))
          << describe(config) << " interleaving " << seed;
    }
  }
}

// Were the arrivals not counted as they must be, the same run would say so.
TEST(Protocol, NoticesTablesThatDoNotBelongToTheRouting) {
  const Profile profile = load_profile(kSeedProfile);
  const Problem problem = problem_of(odd_shape(), "uniform");
  std::vector<ScheduleTables> tables = tables_for(problem, Config{});
  ScheduleTables overfull = tables.front();
  *std::find_if(overfull.slack.begin(), overfull.slack.end(),
                [](int s) { return s < kRowBlock; }) += 1;
  EXPECT_THROW(simulate(problem, Config{}, profile, {overfull}, 1, false), CheckFailure);
  ScheduleTables starved = tables.front();
  *std::find_if(starved.slack.begin(), starved.slack.end(), [](int s) { return s > 0; }) -= 1;
  EXPECT_THROW(simulate(problem, Config{}, profile, {starved}, 1, false), CheckFailure);
  ScheduleTables repeated = tables.front();
  repeated.job_order[0] = repeated.job_order[1];
  EXPECT_THROW(simulate(problem, Config{}, profile, {repeated}, 1, false), CheckFailure);
}

}  // namespace
}  // namespace fusescope::engine::sim
