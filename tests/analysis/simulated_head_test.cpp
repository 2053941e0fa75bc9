// Tokens that a block fetches beside its own tiles (dispatch_head): hidden where tiles run, counted once, and blamed
// where a gate waits for them.

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "analysis/advice.hpp"
#include "analysis/summary.hpp"
#include "engine/sim/simulate.hpp"
#include "simulated.hpp"
#include "timeline/dependencies.hpp"
#include "timeline/records/decode_records.hpp"

namespace fusescope::analysis {
namespace {

using timeline::Event;
using timeline::Kind;
using timeline::Role;
using timeline::Stage;
using timeline::Timeline;
using timeline::Track;

constexpr int kSlots = 8;
constexpr int kBesideTiles = timeline::kFirstFreeLane + kSlots;

Problem layer() {
  return make_problem(load_shape("seed-tp2"), parse_routing("uniform"));
}

Config fetching(int head) {
  Config config;
  config.dispatch_comm_sms = 0;
  config.tokens_per_block = kSlots;
  config.activation = Activation::fused;
  config.tile = TileShape::m160n256;
  config.dispatch_head = head;
  return config;
}

bool is_fetch(Kind kind) {
  return kind == Kind::pull || kind == Kind::scatter || kind == Kind::arrive;
}

bool is_tile(Kind kind) {
  return kind == Kind::mainloop || kind == Kind::epilogue;
}

using Spans = std::vector<std::pair<std::int64_t, std::int64_t>>;

std::int64_t covered_ns(Spans spans) {
  std::sort(spans.begin(), spans.end());
  std::int64_t ns = 0;
  std::int64_t reached = INT64_MIN;
  for (const auto& [begin, end] : spans) {
    ns += std::max<std::int64_t>(0, end - std::max(begin, reached));
    reached = std::max(reached, end);
  }
  return ns;
}

// Of kernel 1's compute blocks of a rank, by plain unions.
struct Areas {
  std::int64_t tiles_ns = 0;
  std::int64_t fetches_alone_ns = 0;  // while no tile of the block runs
  std::int64_t waits_alone_ns = 0;    // while it does not fetch either
};

Areas areas_of(const Timeline& timeline, int rank) {
  struct Block {
    Spans tiles;
    Spans fetches;
    Spans waits;
  };
  std::map<int, Block> blocks;
  for (const Event& event : timeline.events) {
    const Track& track = timeline.tracks[event.track];
    if (track.rank != rank || track.stage != Stage::dispatch_gemm) {
      continue;
    }
    Block& block = blocks[track.block];
    Spans& spans = is_tile(event.kind)    ? block.tiles
                   : is_fetch(event.kind) ? block.fetches
                                          : block.waits;
    spans.emplace_back(event.begin_ns, event.end_ns);
  }
  Areas areas;
  for (auto& [number, block] : blocks) {
    const std::int64_t tiles = covered_ns(block.tiles);
    Spans all = block.tiles;
    all.insert(all.end(), block.fetches.begin(), block.fetches.end());
    const std::int64_t busy = covered_ns(all);
    all.insert(all.end(), block.waits.begin(), block.waits.end());
    areas.tiles_ns += tiles;
    areas.fetches_alone_ns += busy - tiles;
    areas.waits_alone_ns += covered_ns(std::move(all)) - busy;
  }
  return areas;
}

std::int64_t of(const RankAccounting& rank, Role role, Use use) {
  return rank.by_role[static_cast<std::size_t>(role)][static_cast<std::size_t>(use)];
}

std::int64_t compute_of_kernel_2(const Timeline& timeline, int rank) {
  std::int64_t ns = 0;
  for (const Event& event : timeline.events) {
    const Track& track = timeline.tracks[event.track];
    ns += track.rank == rank && track.stage == Stage::gemm_combine_push && is_tile(event.kind)
              ? event.end_ns - event.begin_ns
              : 0;
  }
  return ns;
}

// What runs beside a tile takes no time of the SM, and the sum is SMs x wall all the same.
TEST(SimulatedHead, FetchesBesideTilesAreHiddenAndCountedOnce) {
  const Problem problem = layer();
  for (const int head : {0, 50, 100}) {
    SCOPED_TRACE(head);
    const Timeline timeline = simulated_on_h200(problem, fetching(head));
    std::int64_t hidden = 0;
    for (const RankAccounting& rank : account(timeline).ranks) {
      const Areas areas = areas_of(timeline, rank.rank);
      EXPECT_EQ(of(rank, Role::compute, Use::communication), areas.fetches_alone_ns);
      EXPECT_EQ(of(rank, Role::compute, Use::gate_wait), areas.waits_alone_ns);
      EXPECT_EQ(of(rank, Role::compute, Use::compute),
                areas.tiles_ns + compute_of_kernel_2(timeline, rank.rank));
      std::int64_t sum = 0;
      for (const std::int64_t ns : rank.by_use) {
        sum += ns;
      }
      EXPECT_EQ(sum, timeline.meta.sms * timeline.wall_ns());
    }
    for (const Event& event : timeline.events) {
      hidden += timeline.tracks[event.track].lane == kBesideTiles && is_fetch(event.kind)
                    ? event.end_ns - event.begin_ns
                    : 0;
    }
    EXPECT_EQ(hidden > 0, head < 100);
  }
}

// What was fetched before the first tile is on the path as dispatch, and no launch gap, where the path comes to it
// through a token that was fetched beside tiles.
TEST(SimulatedHead, ThePathGoesOnFromTheRestToTheHead) {
  Config config = fetching(50);
  config.link_gbps = 30;
  const Timeline timeline = simulated_on_h200(layer(), config);
  const Attribution attribution = attribute(timeline);
  ASSERT_EQ(attribution.refusal, "");
  const CriticalPath& path = attribution.path;
  const Event* before = nullptr;
  bool crossed = false;
  std::int64_t gaps_in_kernel = 0;
  for (const Segment& segment : path.segments) {
    const Event* event = segment.event == UINT32_MAX ? nullptr : &timeline.events[segment.event];
    if (event != nullptr && is_fetch(event->kind)) {
      const bool rest = timeline.tracks[event->track].lane == kBesideTiles;
      crossed |= rest && before != nullptr && timeline.tracks[before->track].lane < kBesideTiles &&
                 timeline.tracks[before->track].block == timeline.tracks[event->track].block;
      before = event;
    }
    if (segment.step == Step::launch_gap && before != nullptr && !crossed) {
      gaps_in_kernel += segment.end_ns - segment.begin_ns;
    }
  }
  EXPECT_TRUE(crossed);
  EXPECT_EQ(gaps_in_kernel, 0);
  EXPECT_EQ(path.unexplained_ns, 0);
  EXPECT_EQ(path.causes_missing, 0);
}

// A token of the rest is late, and what its block fetches behind it comes later still. Gates that wait for either
// say so: in flight, or not yet issued.
TEST(SimulatedHead, GatesBlameTheTokenThatWasFetchedBesideTiles) {
  const Problem problem = layer();
  Config config = fetching(50);
  config.slot_order = SlotOrder::rotate_from_self;
  const std::vector<ScheduleTables> tables = engine::sim::tables_for(problem, config);
  const auto tokens = static_cast<std::size_t>(problem.shape.tokens());
  const int late = tables.front().pull_order[tokens * 3 / 4];
  constexpr int kDelay = 400'000;
  config.inject = {InjectPoint::token, kDelay, -1, late};
  const Timeline timeline = simulated_on_h200(problem, config);
  const timeline::Dependencies dependencies(timeline);
  const auto pull_of = [&](int token) { return dependencies.of_token(0, Kind::pull, token); };
  ASSERT_EQ(dependencies.track_of(pull_of(late)).lane, kBesideTiles);
  int for_it = 0;
  int for_others = 0;
  for (const GateBlame& gate : blame_gates(dependencies)) {
    if (gate.rank != 0 || gate.wait_ns < kDelay / 2) {
      continue;
    }
    EXPECT_EQ(gate.source_rank, problem.shape.source_rank(gate.last_token));
    if (gate.last_token == late) {
      ++for_it;
      EXPECT_GT(gate.pull_ns, gate.wait_ns * 9 / 10);
      continue;
    }
    ++for_others;
    const Event& pull = dependencies.event(pull_of(gate.last_token));
    EXPECT_EQ(pull.track, dependencies.event(pull_of(late)).track);
    EXPECT_GE(pull.begin_ns, dependencies.event(pull_of(late)).end_ns);
    EXPECT_EQ(gate.blame, Blame::not_yet_issued);
  }
  EXPECT_GT(for_it, 0);
  EXPECT_GT(for_others, 0);
}

// Suggested where all blocks fetch and the tiles leave room, and nowhere else.
TEST(SimulatedHead, AdviceSuggestsAnotherHeadWhereThereMayBeOne) {
  const auto suggested = [](const Config& config) {
    const Timeline timeline = simulated_on_h200(layer(), config);
    std::vector<std::string> heads;
    for (const Suggestion& each : candidates(timeline, attribute(timeline), config)) {
      if (each.knob == "dispatch_head") {
        EXPECT_NE(each.evidence.find("before the first tile"), std::string::npos) << each.evidence;
        EXPECT_EQ(std::to_string(each.config.dispatch_head), each.to);
        EXPECT_GT(each.at_most_us, 0);
        heads.push_back(each.to);
      }
    }
    return heads;
  };
  EXPECT_EQ(suggested(fetching(100)), (std::vector<std::string>{"25", "50", "75"}));
  EXPECT_EQ(suggested(fetching(50)), (std::vector<std::string>{"25", "75", "100"}));
  Config config = fetching(100);
  config.tile = TileShape::m128n256;
  EXPECT_TRUE(suggested(config).empty());
  config = fetching(100);
  config.activation = Activation::separate;
  EXPECT_TRUE(suggested(config).empty());
  config = fetching(100);
  config.dispatch = Dispatch::gather;
  EXPECT_TRUE(suggested(config).empty());
  config = fetching(100);
  config.dispatch_comm_sms = 16;
  EXPECT_TRUE(suggested(config).empty());
}

TEST(SimulatedHead, ViewsOfExposedCommunicationAgree) {
  const Problem problem = layer();
  for (const int head : {100, 50}) {
    const Config config = fetching(head);
    const Timeline timeline = simulated_on_h200(problem, config);
    const Attribution attribution = attribute(timeline);
    const Rungs rungs = simulated_rungs_on_h200(problem, config);
    const Exposure exposure = state_exposure(timeline, attribution, &rungs);
    EXPECT_TRUE(exposure.agree) << head << "\n" << exposure_text(exposure);
  }
}

}  // namespace
}  // namespace fusescope::analysis
