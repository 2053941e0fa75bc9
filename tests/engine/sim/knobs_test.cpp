// Every knob does what it should, and nothing where it should not.
#include <gtest/gtest.h>

#include <map>
#include <numeric>
#include <tuple>
#include <utility>

#include "sim_run.hpp"
#include "timeline/records/decode_records.hpp"

namespace fusescope::engine::sim {
namespace {

class Knobs : public testing::Test {
 protected:
  double wall(const Config& config) const { return wall_us(problem_, config, profile_); }
  timeline::Timeline timeline(const Config& config) const {
    return timeline_of(problem_, config, profile_);
  }
  const Profile profile_ = load_profile(kSeedProfile);
  const Problem problem_ = problem_of("seed-tp4", "uniform");
  const Config base_{};
};

TEST_F(Knobs, DispatchSplitHasAnInteriorOptimum) {
  Config config;
  std::vector<double> walls;
  for (const int sms : {2, 12, 60}) {
    config.dispatch_comm_sms = sms;
    walls.push_back(wall(config));
  }
  EXPECT_LT(walls[1], 0.9 * walls[0]);
  EXPECT_LT(walls[1], 0.9 * walls[2]);
}

TEST_F(Knobs, FewerDispatchSmsMeanMoreGateWait) {
  Config few = base_;
  few.dispatch_comm_sms = 4;
  Config many = base_;
  many.dispatch_comm_sms = 24;
  EXPECT_GT(total_ns(timeline(few), Kind::gate_wait), total_ns(timeline(many), Kind::gate_wait));
}

TEST_F(Knobs, CombineSmsMatterMostWithoutAllHands) {
  Config few = base_;
  few.combine_comm_sms = 4;
  Config many = base_;
  many.combine_comm_sms = 16;
  const double with_all_hands = wall(few) - wall(many);
  few.all_hands = many.all_hands = false;
  EXPECT_GT(wall(few) - wall(many), 500);
  EXPECT_LT(std::abs(with_all_hands), 100);
}

TEST_F(Knobs, MoreTokensPerBlockMoveMoreWhereSmsAreFew) {
  Config config = base_;
  config.dispatch_comm_sms = 4;
  config.tokens_per_block = 4;
  const double four = wall(config);
  config.tokens_per_block = 12;
  EXPECT_LT(wall(config), 0.95 * four);
}

// Of an own token nothing is copied, of another its row once: the same pulls over the links, and less on
// the SMs and in memory. The GEMM pays for it.
TEST_F(Knobs, GatherStoresEachPeersTokenOnce) {
  Profile h200 = load_profile("h200-nvlink");
  const Problem problem = problem_of("seed-tp2", "uniform");
  Config gather;
  gather.dispatch_comm_sms = 8;
  Config scatter = gather;
  gather.dispatch = Dispatch::gather;
  const double paid = wall_us(problem, gather, h200);
  h200.gemm_gather = 1;
  EXPECT_LT(wall_us(problem, gather, h200), 0.95 * wall_us(problem, scatter, h200));
  EXPECT_GT(paid, 1.1 * wall_us(problem, gather, h200));

  const timeline::Timeline found = timeline_of(problem, gather, h200);
  EXPECT_EQ(timeline::check(found), "");
  EXPECT_LT(2 * total_ns(found, Kind::scatter),
            total_ns(timeline_of(problem, scatter, h200), Kind::scatter));
  for (const timeline::Event& event : found.events) {
    if (event.kind == Kind::pull && event.peer == found.tracks[event.track].rank) {
      EXPECT_EQ(event.begin_ns + 1, event.end_ns);
    }
  }
}

// Nothing is left for kernel 1 to copy: the links carry what they carried before it, under the schedule build.
TEST_F(Knobs, PushedTokensAreThereBeforeKernel1) {
  const Profile h200 = load_profile("h200-nvlink");
  const Problem problem = problem_of("seed-tp2", "uniform");
  Config push;
  push.dispatch_comm_sms = 0;
  push.schedule = ScheduleSite::fused;
  push.dispatch = Dispatch::push;
  Config gather = push;
  gather.dispatch = Dispatch::gather;
  const timeline::Timeline pushed = timeline_of(problem, push, h200);
  EXPECT_EQ(timeline::check(pushed), "");
  for (const timeline::Event& event : pushed.events) {
    if (event.kind == Kind::pull || event.kind == Kind::scatter) {
      EXPECT_EQ(event.begin_ns + 1, event.end_ns);
    }
  }
  const double ns = 2.0 * problem.shape.tokens_per_rank * problem.shape.hidden / h200.link_push;
  const double before = static_cast<double>(total_ns(pushed, Kind::ids_exchange) +
                                            total_ns(pushed, Kind::schedule_build) +
                                            total_ns(pushed, Kind::copy_in)) /
                        2;
  EXPECT_NEAR(before, ns + h200.watermark_latency * 1e3, 2);
  EXPECT_LT(wall_us(problem, push, h200), wall_us(problem, gather, h200));
  EXPECT_EQ(total_ns(timeline_of(problem, gather, h200), Kind::copy_in), 0);
}

TEST_F(Knobs, SlotOrderMovesArrivalsOnly) {
  Config interleaved = base_;
  interleaved.slot_order = SlotOrder::interleave_sources;
  Config rotated = base_;
  rotated.slot_order = SlotOrder::rotate_from_self;
  EXPECT_NE(wall(interleaved), wall(base_));
  EXPECT_NE(wall(rotated), wall(base_));
  EXPECT_NE(wall(rotated), wall(interleaved));
}

TEST_F(Knobs, SlowerLinksAreSlowerAndAHighCapIsNone) {
  Config config = base_;
  std::vector<double> walls;
  for (const double gbps : {5.0, 15.0, 30.0, 1000.0}) {
    config.link_gbps = gbps;
    walls.push_back(wall(config));
  }
  EXPECT_GT(walls[0], walls[1]);
  EXPECT_GT(walls[1], walls[2]);
  EXPECT_GT(walls[2], walls[3]);
  EXPECT_EQ(walls[3], wall(base_));
  config.form = LayerForm::serial;
  const double serial = wall(config);
  config.link_gbps = 5;
  EXPECT_GT(wall(config), serial);
}

// As in the kernels: a rank that talks to one peer at a time gets that line's share of the cap.
TEST_F(Knobs, ACappedLinkIsDealtOutInLinesOneForEachPeer) {
  const Shape shape = odd_shape();
  Config config;
  config.slot_order = SlotOrder::rotate_from_self;
  config.link_gbps = 0.5;
  const timeline::Timeline slow =
      timeline_of(problem_of(shape, "uniform"), config, load_profile(kSeedProfile));
  const double line_ns = 2.0 * shape.hidden / (config.link_gbps / (shape.ranks - 1));
  for (const Kind kind : {Kind::pull, Kind::push}) {
    for (int rank = 0; rank < shape.ranks; ++rank) {
      for (int peer = 0; peer < shape.ranks; ++peer) {
        std::int64_t first = INT64_MAX;
        std::int64_t last = 0;
        int rows = 0;
        for (const timeline::Event& event : slow.events) {
          if (event.kind == kind && event.peer == peer && slow.tracks[event.track].rank == rank) {
            first = std::min(first, event.begin_ns);
            last = std::max(last, event.end_ns);
            ++rows;
          }
        }
        ASSERT_EQ(rows, shape.tokens_per_rank);
        if (peer != rank) {
          EXPECT_GE(static_cast<double>(last - first), rows * line_ns - rows);
        }
      }
    }
  }
}

TEST_F(Knobs, ASlowLinksCountersAreFewAndHoldEveryByte) {
  const Shape shape = odd_shape();
  const Problem problem = problem_of(shape, "uniform");
  Config config;
  config.link_gbps = 0.001;
  const timeline::Timeline slow = timeline_of(problem, config, load_profile(kSeedProfile));
  int found = 0;
  for (const timeline::Counter& counter : slow.counters) {
    if (counter.name == "pulled from peers") {
      ++found;
      ASSERT_LE(counter.value.size(), 2001u);
      ASSERT_GE(counter.value.size(), 2u);
      const double bin_ns = static_cast<double>(counter.time_ns[1] - counter.time_ns[0]);
      const double bytes =
          std::accumulate(counter.value.begin(), counter.value.end(), 0.0) * bin_ns;
      const double rows = shape.tokens() - shape.tokens_per_rank;
      EXPECT_NEAR(bytes, rows * shape.hidden * 2, 1);
    }
  }
  EXPECT_EQ(found, shape.ranks);
}

TEST_F(Knobs, FusedActivationSavesItsPhase) {
  Config config = base_;
  config.activation = Activation::fused;
  const timeline::Timeline fused = timeline(config);
  EXPECT_EQ(count_of(fused, Kind::activation), 0);
  EXPECT_EQ(count_of(timeline(base_), Kind::activation), 4);
  EXPECT_LT(wall(config), wall(base_));
}

// The seed's machine has no wgmma, and 99 KiB of shared memory: its tiles are those of the kernels that run
// there.
TEST_F(Knobs, TheTileIsTheWidestThatTheProfilesDeviceRuns) {
  const int columns = 2 * problem_.shape.intermediate;
  EXPECT_EQ(timeline(base_).wiring.n_tiles_1, columns / 128);
  EXPECT_EQ(timeline_of(problem_, base_, load_profile("h200-nvlink")).wiring.n_tiles_1,
            columns / 256);
  Config forced = base_;
  forced.gemm = GemmPath::mma;
  EXPECT_EQ(wall(forced), wall(base_));
  EXPECT_EQ(timeline_of(problem_, forced, load_profile("h200-nvlink")).wiring.n_tiles_1,
            columns / 128);
}

TEST_F(Knobs, NarrowTilesAreTwiceAsMany) {
  const Profile h200 = load_profile("h200-nvlink");
  Config config = base_;
  config.tile = TileShape::m128n128;
  const timeline::Timeline narrow = timeline_of(problem_, config, h200);
  const timeline::Timeline wide = timeline_of(problem_, base_, h200);
  EXPECT_EQ(narrow.wiring.n_tiles_1, 2 * wide.wiring.n_tiles_1);
  EXPECT_EQ(count_of(narrow, Kind::mainloop), 2 * count_of(wide, Kind::mainloop));
}

// Compute only, one wave of tiles at most, all in the cache: the time of a GEMM is that of its longest tile.
double longest_tile_ns(int rows_of_expert, TileShape tile, Dispatch dispatch = Dispatch::scatter) {
  Profile profile = load_profile("h200-nvlink");
  profile.l2 = 4096;
  const Shape shape{"one expert", 1, rows_of_expert, 2048, 1, 1, 512, "made up for tests"};
  Config config;
  config.study = Study::compute_all;
  config.tile = tile;
  config.dispatch = dispatch;
  config.activation = Activation::fused;
  const timeline::Timeline timeline = timeline_of(problem_of(shape, "balanced"), config, profile);
  std::int64_t longest = 0;
  for (const timeline::Event& event : timeline.events) {
    const bool first = timeline.tracks[event.track].stage == Stage::dispatch_gemm;
    if (event.kind == Kind::mainloop && first) {
      longest = std::max(longest, event.end_ns - event.begin_ns);
    }
  }
  return static_cast<double>(longest) - profile.tile_fill * 1e3;
}

// At the profile's rates, whatever they hold.
TEST_F(Knobs, WholeRowBlocksCostTheirProducts) {
  const double whole = 2.0 * 128 * 256 * 2048 / (760e3 / 132);
  const double narrow = 2.0 * 128 * 128 * 2048 / (660e3 / 132);
  for (const int rows : {1, 64, 128, 129, 160}) {
    EXPECT_NEAR(longest_tile_ns(rows, TileShape::m128n256), whole, 2) << rows;
    EXPECT_NEAR(longest_tile_ns(rows, TileShape::m128n128), narrow, 2) << rows;
  }
}

TEST_F(Knobs, TilesByRowStepsCostTheirRows) {
  const double whole = longest_tile_ns(128, TileShape::m128n256);
  EXPECT_NEAR(longest_tile_ns(128, TileShape::m160n256), whole, 2);
  EXPECT_NEAR(longest_tile_ns(112, TileShape::m160n256), whole * 112 / 128, 2);
  EXPECT_NEAR(longest_tile_ns(113, TileShape::m160n256), whole, 2);
  EXPECT_NEAR(longest_tile_ns(129, TileShape::m160n256), whole * 144 / 128, 2);
  EXPECT_NEAR(longest_tile_ns(160, TileShape::m160n256), whole * 160 / 128, 2);
  EXPECT_NEAR(longest_tile_ns(161, TileShape::m160n256), whole, 2);
  EXPECT_NEAR(longest_tile_ns(256, TileShape::m288n128), whole, 2);
  EXPECT_NEAR(longest_tile_ns(240, TileShape::m288n128), whole * 240 / 256, 2);
  EXPECT_NEAR(longest_tile_ns(241, TileShape::m288n128), whole, 2);
  EXPECT_NEAR(longest_tile_ns(288, TileShape::m288n128), whole * 288 / 256, 2);
}

// 96 rows of 256 columns and 192 of 128 columns have 0.75 of a whole tile's products and take 0.75 of its time;
// fewer rows take no less.
TEST_F(Knobs, TilesByRowStepsCostNoLessThanTheirStages) {
  const double floor = 0.75 * 2 * 128 * 256 * 2048 / (760e3 / 132);
  for (const int rows : {1, 64, 96}) {
    EXPECT_NEAR(longest_tile_ns(rows, TileShape::m160n256), floor, 2) << rows;
  }
  for (const int rows : {1, 128, 192}) {
    EXPECT_NEAR(longest_tile_ns(rows, TileShape::m288n128), floor, 2) << rows;
  }
}

// By the row and for all columns alike, beside what the products take. Halves of row blocks are copied, and by tiles
// by row steps rows in 32s.
TEST_F(Knobs, CopiesOfGatheredRowsAddToATile) {
  const double all_rows =
      2.0 * 128 * 256 * 2048 / (760e3 / 132) * (1 / load_profile("h200-nvlink").gemm_gather - 1);
  constexpr double kRounding = 4;  // [ns] of four steps, with the copies and without
  const auto added = [](int rows, TileShape tile) {
    return longest_tile_ns(rows, tile, Dispatch::gather) - longest_tile_ns(rows, tile);
  };
  for (const TileShape tile : {TileShape::m128n128, TileShape::m128n256}) {
    EXPECT_NEAR(added(1, tile), all_rows / 2, kRounding);
    EXPECT_NEAR(added(64, tile), all_rows / 2, kRounding);
    EXPECT_NEAR(added(65, tile), all_rows, kRounding);
    EXPECT_NEAR(added(129, tile), all_rows, kRounding);
  }
  for (const auto& [rows, copied] : {std::pair{1, 32}, {32, 32}, {33, 64}, {96, 96}, {144, 160}}) {
    EXPECT_NEAR(added(rows, TileShape::m160n256), all_rows * copied / 128, kRounding) << rows;
  }
}

TEST_F(Knobs, HostScheduleCostsItsDifference) {
  Config device = base_;
  device.schedule = ScheduleSite::device;
  Config config = base_;
  config.schedule = ScheduleSite::host;
  const double host = profile_.schedule_host + profile_.schedule_host_per_hit *
                                                   static_cast<double>(problem_.shape.hits()) / 1e3;
  EXPECT_NEAR(wall(config) - wall(device), host - profile_.schedule_device, 0.01);
}

// Its phases touch, the copy-in hides behind the schedule build, and no rank waits at a barrier.
TEST_F(Knobs, FusedScheduleIsOneKernel) {
  Config fused = base_;
  fused.schedule = ScheduleSite::fused;
  Config device = base_;
  device.schedule = ScheduleSite::device;
  const timeline::Timeline one = timeline(fused);
  EXPECT_EQ(timeline::check(one), "");
  EXPECT_EQ(count_of(one, Kind::barrier), 0);
  EXPECT_EQ(count_of(one, Kind::ids_exchange), 4);
  const double schedule =
      profile_.prologue_schedule +
      profile_.prologue_per_hit * static_cast<double>(problem_.shape.hits()) / 1e3;
  EXPECT_NEAR(static_cast<double>(total_ns(one, Kind::schedule_build)), 4e3 * schedule, 4);
  EXPECT_NEAR(static_cast<double>(total_ns(one, Kind::ids_exchange)),
              4e3 * profile_.prologue_exchange, 4);
  const double left = static_cast<double>(total_ns(one, Kind::copy_in)) / 4e3;
  const double copied = static_cast<double>(total_ns(timeline(device), Kind::copy_in)) / 4e3;
  EXPECT_LT(left, copied);
  const double saved = profile_.ids_exchange - profile_.prologue_exchange +
                       profile_.schedule_device - schedule + 2 * profile_.barrier_latency + copied -
                       left + 4 * profile_.launch_gap_graph;
  EXPECT_NEAR(wall(device) - wall(fused), saved, 0.02);
  fused.form = device.form = LayerForm::serial;
  EXPECT_LT(wall(fused), wall(device));
}

// Kernel 2 takes the SMs that kernel 1 leaves: some of its blocks begin while others of kernel 1 still run, and
// wait there for the activations of a row block.
TEST_F(Knobs, ProgrammaticLaunchesOverlapTheKernels) {
  Config stream = base_;
  stream.activation = Activation::fused;
  Config config = stream;
  config.launch = LaunchOrder::programmatic;
  const timeline::Timeline overlapped = timeline(config);
  EXPECT_EQ(timeline::check(overlapped), "");
  EXPECT_TRUE(overlapped.meta.programmatic);
  EXPECT_LT(wall(config), wall(stream));
  EXPECT_GT(total_ns(overlapped, Kind::activation_wait), 0);
  EXPECT_EQ(count_of(timeline(stream), Kind::activation_wait), 0);
  std::int64_t kernel_1_ends = 0;
  std::int64_t kernel_2_begins = INT64_MAX;
  for (const timeline::Event& event : overlapped.events) {
    const timeline::Track& track = overlapped.tracks[event.track];
    if (track.rank == 0 && track.stage == timeline::Stage::dispatch_gemm) {
      kernel_1_ends = std::max(kernel_1_ends, event.end_ns);
    } else if (track.rank == 0 && track.stage == timeline::Stage::gemm_combine_push) {
      kernel_2_begins = std::min(kernel_2_begins, event.begin_ns);
    }
  }
  EXPECT_LT(kernel_2_begins, kernel_1_ends);
  // Without the flag such a timeline is a broken one.
  timeline::Timeline unsaid = overlapped;
  unsaid.meta.programmatic = false;
  EXPECT_NE(timeline::check(unsaid).find("lies outside its gemm_combine_push phase"),
            std::string::npos);
}

// Every tile once, whoever takes it.
TEST_F(Knobs, ACounterDealsOutAllTiles) {
  const timeline::Timeline robin = timeline(base_);
  for (const TileCounter counter : {TileCounter::kernel_2, TileCounter::both}) {
    Config config = base_;
    config.tile_counter = counter;
    const timeline::Timeline dealt = timeline(config);
    EXPECT_EQ(timeline::check(dealt), "");
    EXPECT_EQ(count_of(dealt, Kind::mainloop), count_of(robin, Kind::mainloop));
  }
}

TEST_F(Knobs, WithoutAGraphEveryGapIsWider) {
  const double wider = profile_.launch_gap_eager - profile_.launch_gap_graph;
  for (const auto& [site, gaps, build] :
       {std::tuple{ScheduleSite::device, 9,
                   profile_.schedule_device_eager - profile_.schedule_device},
        std::tuple{ScheduleSite::fused, 5, 0.0}}) {
    Config graph = base_;
    graph.schedule = site;
    Config eager = graph;
    eager.graph = false;
    EXPECT_NEAR(wall(eager) - wall(graph), gaps * wider + build, 0.05);
  }
}

TEST_F(Knobs, WatermarkChunksSplitThePlanes) {
  Config config = base_;
  config.watermark_chunks = 4;
  EXPECT_EQ(count_of(timeline(config), Kind::watermark), 4 * 4 * 4);
  EXPECT_EQ(count_of(timeline(base_), Kind::watermark), 4 * 4);
  EXPECT_NEAR(wall(config), wall(base_), 0.02 * wall(base_));
  EXPECT_EQ(count_of(timeline(config), Kind::reduce), 4 * count_of(timeline(base_), Kind::reduce));
  // Every chunk's election and watermark cost the job that wins it.
  config.job_order = JobOrder::by_token;
  const double split = wall(config);
  config.watermark_chunks = 1;
  EXPECT_NE(split, wall(config));
}

TEST_F(Knobs, StudiesTakeOneCostAwayAtATime) {
  Config config = base_;
  double last = 0;
  for (const Study study : {Study::compute_all, Study::compute_split, Study::gates_open,
                            Study::ideal_order, Study::full}) {
    config.study = study;
    const double now = wall(config);
    EXPECT_GT(now, last);
    last = now;
  }
}

TEST_F(Knobs, ComputeOnlyKnowsNothingOfCommunication) {
  Config compute = base_;
  compute.study = Study::compute_all;
  const double expected = wall(compute);
  std::vector<Config> others(7, compute);
  others[0].dispatch_comm_sms = 30;
  others[1].combine_comm_sms = 5;
  others[2].tokens_per_block = 4;
  others[3].pull_order = PullOrder::by_token;
  others[4].job_order = JobOrder::by_token;
  others[5].all_hands = false;
  others[6].link_gbps = 1;
  for (const Config& other : others) {
    EXPECT_EQ(wall(other), expected) << describe(other);
  }
}

TEST_F(Knobs, SerialLayerKnowsNothingOfTheSplit) {
  Config serial = base_;
  serial.form = LayerForm::serial;
  const double expected = wall(serial);
  serial.dispatch_comm_sms = 40;
  serial.combine = Combine::block_per_job;
  serial.all_hands = false;
  serial.pull_order = PullOrder::by_token;
  EXPECT_EQ(wall(serial), expected);
}

// Kernel 1 without communication blocks: every block fetches before its first tile, so that no gate opens
// later than the last token was moved, and every token is moved once.
TEST_F(Knobs, WithoutDispatchSmsEveryBlockFetchesFirst) {
  const Profile h200 = load_profile("h200-nvlink");
  const Problem problem = problem_of("seed-tp2", "uniform");
  Config config;
  config.dispatch_comm_sms = 0;
  config.combine_comm_sms = 8;
  const timeline::Timeline fetched = timeline_of(problem, config, h200);
  EXPECT_EQ(timeline::check(fetched), "");
  EXPECT_EQ(count_of(fetched, Kind::pull), 2 * problem.shape.tokens());
  std::vector<std::int64_t> last_arrive(2, 0);
  std::vector<std::int64_t> first_tile(2, INT64_MAX);
  for (const timeline::Event& event : fetched.events) {
    const timeline::Track& track = fetched.tracks[event.track];
    if (track.stage != timeline::Stage::dispatch_gemm) {
      continue;
    }
    EXPECT_EQ(track.role, timeline::Role::compute);
    const auto rank = static_cast<std::size_t>(track.rank);
    if (event.kind == Kind::arrive) {
      last_arrive[rank] = std::max(last_arrive[rank], event.end_ns);
    } else if (event.kind == Kind::mainloop) {
      first_tile[rank] = std::min(first_tile[rank], event.begin_ns);
    }
  }
  for (std::size_t rank = 0; rank < 2; ++rank) {
    EXPECT_GT(first_tile[rank], 0);
    // A block goes on to its tiles before the others are through: some tiles begin early.
    EXPECT_LT(first_tile[rank], last_arrive[rank] + 60'000);
  }
  // As on the machine: all of 132 SMs that fetch first beat 24 that fetch beside the tiles.
  config.dispatch_comm_sms = 24;
  const double split = wall_us(problem, config, h200);
  config.dispatch_comm_sms = 0;
  EXPECT_LT(wall_us(problem, config, h200), split);
}

// All blocks fetch; what is behind the head, beside their tiles.
class DispatchHead : public Knobs {
 protected:
  static constexpr int kSlots = 8;
  static constexpr int kBesideTiles = timeline::kFirstFreeLane + kSlots;

  static Config config_of(int head) {
    Config config;
    config.dispatch_comm_sms = 0;
    config.tokens_per_block = kSlots;
    config.activation = Activation::fused;
    config.tile = TileShape::m160n256;
    config.dispatch_head = head;
    return config;
  }
  timeline::Timeline fetched(const Config& config) const {
    return timeline_of(layer_, config, h200_);
  }
  static bool in_dispatch(const timeline::Timeline& timeline, const timeline::Event& event) {
    return timeline.tracks[event.track].stage == timeline::Stage::dispatch_gemm;
  }

  const Profile h200_ = load_profile("h200-nvlink");
  const Problem layer_ = problem_of("seed-tp2", "uniform");
};

TEST_F(DispatchHead, SlotsFetchTheHeadAndOneMoreLaneOfEachBlockTheRest) {
  const int tokens = layer_.shape.tokens();
  for (const int percent : {0, 33, 50, 99, 100}) {
    const Config config = config_of(percent);
    const std::vector<ScheduleTables> tables = tables_for(layer_, config);
    const timeline::Timeline timeline = fetched(config);
    EXPECT_EQ(timeline::check(timeline), "");
    for (int rank = 0; rank < layer_.shape.ranks; ++rank) {
      std::vector<int> head;
      std::vector<int> rest;
      for (const timeline::Event& event : timeline.events) {
        const timeline::Track& track = timeline.tracks[event.track];
        if (event.kind == Kind::arrive && track.rank == rank) {
          EXPECT_EQ(track.role, timeline::Role::compute);
          EXPECT_LE(track.lane, kBesideTiles);
          (track.lane == kBesideTiles ? rest : head).push_back(event.token);
        }
      }
      const auto& order = tables[static_cast<std::size_t>(rank) % tables.size()].pull_order;
      const auto cut = order.begin() + tokens * percent / 100;
      std::vector<int> first(order.begin(), cut);
      std::vector<int> last(cut, order.end());
      for (std::vector<int>* list : {&head, &rest, &first, &last}) {
        std::sort(list->begin(), list->end());
      }
      EXPECT_EQ(head, first) << percent;
      EXPECT_EQ(rest, last) << percent;
    }
  }
}

// A block's slots are through before it fetches beside its tiles, one token at a time; and then its tiles run,
// without waiting for that.
TEST_F(DispatchHead, TheRestIsFetchedBesideTiles) {
  const timeline::Timeline timeline = fetched(config_of(50));
  struct Block {
    std::int64_t head_ends = 0;
    std::int64_t rest_begins = INT64_MAX;
    std::int64_t rest_ends = 0;
    std::int64_t first_wait = INT64_MAX;
    std::int64_t first_tile = INT64_MAX;
  };
  std::map<std::pair<int, int>, Block> blocks;
  for (const timeline::Event& event : timeline.events) {
    if (!in_dispatch(timeline, event)) {
      continue;
    }
    const timeline::Track& track = timeline.tracks[event.track];
    Block& block = blocks[{track.rank, track.block}];
    if (track.lane == kBesideTiles) {
      block.rest_begins = std::min(block.rest_begins, event.begin_ns);
      block.rest_ends = std::max(block.rest_ends, event.end_ns);
    } else if (track.lane >= timeline::kFirstFreeLane) {
      block.head_ends = std::max(block.head_ends, event.end_ns);
    } else if (event.kind == Kind::mainloop) {
      block.first_tile = std::min(block.first_tile, event.begin_ns);
    } else if (event.kind == Kind::gate_wait) {
      block.first_wait = std::min(block.first_wait, event.begin_ns);
    }
  }
  int beside = 0;
  for (const auto& [number, block] : blocks) {
    EXPECT_EQ(block.rest_begins, block.head_ends);
    EXPECT_EQ(std::min(block.first_wait, block.first_tile), block.head_ends);
    beside += block.rest_ends > block.first_tile;
  }
  EXPECT_EQ(blocks.size(), 2 * static_cast<std::size_t>(h200_.sms));
  EXPECT_GT(beside, 2 * h200_.sms / 2);
}

TEST_F(DispatchHead, ASmallerHeadStartsTheFirstTileEarlier) {
  std::int64_t last = 0;
  for (const int percent : {0, 25, 50, 75, 100}) {
    const timeline::Timeline timeline = fetched(config_of(percent));
    std::int64_t first_tile = INT64_MAX;
    for (const timeline::Event& event : timeline.events) {
      if (event.kind == Kind::mainloop && in_dispatch(timeline, event)) {
        first_tile = std::min(first_tile, event.begin_ns);
      }
    }
    EXPECT_GT(first_tile, last) << percent;
    last = first_tile;
  }
}

// A kernel's block ends when its tiles and its share of the rest are done, also where the tiles wait for nothing.
TEST_F(DispatchHead, BlocksEndWithTheirShareOfTheRest) {
  Config config = config_of(0);
  config.study = Study::gates_open;
  config.link_gbps = 20;
  const timeline::Timeline timeline = fetched(config);
  EXPECT_EQ(count_of(timeline, Kind::arrive), 2 * layer_.shape.tokens());
  std::int64_t last_arrive = 0;
  std::int64_t last_tile = 0;
  std::int64_t kernel_ends = 0;
  for (const timeline::Event& event : timeline.events) {
    if (event.kind == Kind::dispatch_gemm) {
      kernel_ends = std::max(kernel_ends, event.end_ns);
    } else if (event.kind == Kind::arrive) {
      last_arrive = std::max(last_arrive, event.end_ns);
    } else if (event.kind == Kind::epilogue && in_dispatch(timeline, event)) {
      last_tile = std::max(last_tile, event.end_ns);
    }
  }
  EXPECT_GT(last_arrive, last_tile);
  EXPECT_GE(kernel_ends, last_arrive);
}

TEST_F(DispatchHead, ComputeOnlyAndTheSerialLayerKnowNothingOfIt) {
  Config config = config_of(50);
  config.study = Study::compute_all;
  Config whole = config;
  whole.dispatch_head = 100;
  EXPECT_EQ(wall_us(layer_, config, h200_), wall_us(layer_, whole, h200_));
  config.study = whole.study = Study::full;
  config.form = whole.form = LayerForm::serial;
  EXPECT_EQ(wall_us(layer_, config, h200_), wall_us(layer_, whole, h200_));
}

// Blocks of jobs take the SMs that tiles have left, so that few communication SMs suffice; where they cannot,
// they queue.
TEST_F(Knobs, ShortLivedBlocksTakeFreedSms) {
  Profile h200 = load_profile("h200-nvlink");
  const Problem problem = problem_of("seed-tp2", "uniform");
  Config config;
  config.combine = Combine::block_per_job;
  config.all_hands = false;
  config.combine_comm_sms = 8;
  const double freed = wall_us(problem, config, h200);
  h200.job_blocks_per_freed_sm = 0;
  h200.job_blocks_per_sm = 1;
  EXPECT_LT(freed, 0.7 * wall_us(problem, config, h200));
}

// Fewer SMs at work run at a higher clock; where kernels overlap, none rests.
TEST_F(Knobs, TheClockRisesWhereFewerSmsCompute) {
  Profile h200 = load_profile("h200-nvlink");
  const Problem problem = problem_of("seed-tp2", "uniform");
  Config config;
  config.study = Study::compute_split;
  config.dispatch_comm_sms = 48;
  const double gained = wall_us(problem, config, h200);
  Config overlapping = config;
  overlapping.launch = LaunchOrder::programmatic;
  const double without_rest = wall_us(problem, overlapping, h200);
  h200.power_exponent = 0;
  EXPECT_EQ(wall_us(problem, overlapping, h200), without_rest);
  EXPECT_LT(gained, wall_us(problem, config, h200));
  config.study = Study::compute_all;
  EXPECT_EQ(wall_us(problem, config, h200), wall_us(problem, config, load_profile("h200-nvlink")));
}

}  // namespace
}  // namespace fusescope::engine::sim
