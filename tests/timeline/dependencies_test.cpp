// Dependencies against a plain search over all events.

#include "timeline/dependencies.hpp"

#include <gtest/gtest.h>

#include "tiny_layer.hpp"

namespace fusescope::timeline {
namespace {

constexpr auto kNone = Dependencies::kNone;

// The event that ended last among those that satisfy `wanted`.
template <typename Wanted>
Dependencies::EventId latest(const Timeline& timeline, Wanted wanted) {
  Dependencies::EventId last = kNone;
  for (Dependencies::EventId id = 0; id < timeline.events.size(); ++id) {
    const Event& event = timeline.events[id];
    if (wanted(event, timeline.tracks[event.track]) &&
        (last == kNone || event.end_ns > timeline.events[last].end_ns)) {
      last = id;
    }
  }
  return last;
}

TEST(Dependencies, OpeningArriveIsTheLastOfTheTokensThatHitTheRowBlock) {
  const Sketch sketch;
  const Timeline timeline = tiny_layer(sketch);
  const Dependencies dependencies(timeline);
  for (int rank = 0; rank < sketch.ranks; ++rank) {
    for (int block = 0; block < sketch.row_blocks; ++block) {
      const auto expected = latest(timeline, [&](const Event& event, const Track& track) {
        return event.kind == Kind::arrive && track.rank == rank &&
               (row_block_of(sketch, event.token, 0) == block ||
                row_block_of(sketch, event.token, 1) == block);
      });
      ASSERT_NE(expected, kNone);
      EXPECT_EQ(dependencies.opening_arrive(rank, block), expected) << rank << " " << block;
    }
  }
}

TEST(Dependencies, EveryWaitOfTheTinyLayerEndsWithItsCauseOrAtOnce) {
  const Timeline timeline = tiny_layer();
  const Dependencies dependencies(timeline);
  int waits = 0;
  for (Dependencies::EventId id = 0; id < timeline.events.size(); ++id) {
    const Event& event = timeline.events[id];
    if (event.kind == Kind::gate_wait || event.kind == Kind::ready_wait ||
        event.kind == Kind::reduce_wait) {
      const auto cause = dependencies.cause(id);
      ASSERT_NE(cause, kNone) << name(event.kind);
      EXPECT_EQ(event.end_ns, std::max(event.begin_ns + 1, timeline.events[cause].end_ns));
      ++waits;
    }
  }
  EXPECT_EQ(waits, 2 * (3 * 2 + 8 + 2));
}

// Row blocks 0 and 1 are one tile, which waits for both and completes both.
TEST(Dependencies, ATileOfTwoRowBlocksIsTheTileOfBoth) {
  const Timeline timeline = tiny_layer({.topk = 1, .merged = true});
  const Wiring& wiring = timeline.wiring;
  EXPECT_EQ(wiring.tile_of(1, 1), 0);
  EXPECT_EQ(wiring.last_of_tile(1, 0), 1);
  EXPECT_EQ(wiring.last_of_tile(1, 1), 1);
  EXPECT_EQ(wiring.last_of_tile(1, 2), 2);
  EXPECT_EQ(wiring.tile_of(2, 1), 1);
  EXPECT_EQ(wiring.tile_of(0, 3), 3);
  EXPECT_EQ(wiring.row_tiles(0), 2);
  const Dependencies dependencies(timeline);
  for (int rank = 0; rank < 2; ++rank) {
    for (const auto& [stage, epilogue] :
         {std::pair{Stage::dispatch_gemm, &Dependencies::activating_epilogue},
          {Stage::gemm_combine_push, &Dependencies::completing_epilogue}}) {
      const auto last =
          latest(timeline, [&, stage = stage](const Event& event, const Track& track) {
            return event.kind == Kind::epilogue && track.rank == rank && track.stage == stage &&
                   event.row_block == 0;
          });
      ASSERT_NE(last, kNone);
      EXPECT_EQ((dependencies.*epilogue)(rank, 0), last);
      EXPECT_EQ((dependencies.*epilogue)(rank, 1), last);
    }
    EXPECT_EQ(dependencies.last_to_open(rank, 0), 1);
    EXPECT_EQ(dependencies.last_to_open(rank, 2), 2);
  }
  int waits = 0;
  int for_the_second = 0;
  for (Dependencies::EventId id = 0; id < timeline.events.size(); ++id) {
    const Event& event = timeline.events[id];
    if (event.kind == Kind::gate_wait || event.kind == Kind::ready_wait) {
      const auto cause = dependencies.cause(id);
      ASSERT_NE(cause, kNone) << name(event.kind);
      EXPECT_EQ(event.end_ns, std::max(event.begin_ns + 1, timeline.events[cause].end_ns));
      ++waits;
      for_the_second += event.kind == Kind::gate_wait && event.row_block == 0 &&
                        cause == dependencies.opening_arrive(dependencies.rank_of(id), 1) &&
                        cause != dependencies.opening_arrive(dependencies.rank_of(id), 0);
    }
  }
  EXPECT_EQ(waits, 2 * (2 * 2 + 8));
  EXPECT_GT(for_the_second, 0);
}

TEST(Dependencies, LastRankToEnterIsTheCauseOfTheOthersBarriers) {
  const Timeline timeline = tiny_layer();
  const Dependencies dependencies(timeline);
  for (int index : {0, 1}) {
    const auto last = dependencies.last_to_enter(Kind::barrier, index);
    ASSERT_NE(last, kNone);
    EXPECT_EQ(dependencies.rank_of(last), 1);
    EXPECT_EQ(dependencies.event(last).index, index);
    EXPECT_EQ(dependencies.cause(dependencies.phase(0, Kind::barrier, index)), last);
    EXPECT_EQ(dependencies.cause(last), kNone);
  }
}

TEST(Dependencies, WatermarksConnectSenderAndReceiver) {
  const Timeline timeline = tiny_layer();
  const Dependencies dependencies(timeline);
  const auto raised = dependencies.watermark(1, 0, 0);
  ASSERT_NE(raised, kNone);
  EXPECT_EQ(dependencies.rank_of(raised), 1);
  EXPECT_EQ(dependencies.event(raised).peer, 0);
  EXPECT_EQ(dependencies.event(dependencies.previous_on_track(raised)).kind, Kind::elect);
  EXPECT_EQ(dependencies.watermark(1, 0, 1), kNone);
  EXPECT_EQ(dependencies.watermark(2, 0, 0), kNone);
}

TEST(Dependencies, ProgramOrderSkipsNothingAndKnowsParents) {
  Timeline timeline;
  timeline.tracks = {{}, {.rank = 1}};
  const auto slice = [](std::int64_t begin, std::int64_t end, std::uint32_t track) {
    return Event{.begin_ns = begin, .end_ns = end, .track = track, .kind = Kind::copy_in};
  };
  timeline.events = {slice(0, 100, 0), slice(10, 20, 0),   slice(20, 40, 0),
                     slice(25, 30, 0), slice(100, 110, 0), slice(5, 6, 1)};
  const Dependencies dependencies(timeline);
  const std::vector<std::uint32_t> previous = {kNone, kNone, 1, 1, 0, kNone};
  const std::vector<std::uint32_t> parents = {kNone, 0, 0, 2, kNone, kNone};
  for (Dependencies::EventId id = 0; id < timeline.events.size(); ++id) {
    EXPECT_EQ(dependencies.previous_on_track(id), previous[id]) << id;
    EXPECT_EQ(dependencies.parent(id), parents[id]) << id;
  }
  EXPECT_EQ(dependencies.events_of_track(1).first, 5u);
  EXPECT_EQ(dependencies.events_of_track(7).last, 0u);
}

TEST(Dependencies, KernelsEndWithTheirLastBlock) {
  const Timeline timeline = tiny_layer();
  const Dependencies dependencies(timeline);
  for (Kind kind : {Kind::dispatch_gemm, Kind::gemm_combine_push, Kind::final_reduce}) {
    const auto phase = dependencies.phase(1, kind);
    ASSERT_NE(phase, kNone);
    const auto last = dependencies.cause(phase);
    ASSERT_NE(last, kNone);
    EXPECT_EQ(dependencies.event(last).end_ns, dependencies.event(phase).end_ns);
    EXPECT_EQ(phase_of(dependencies.track_of(last).stage, false), kind);
  }
}

// Two slots fetch tokens 0 to 2, then the tile waits; a third lane fetches 3 and 4 beside it, 4 while the tile runs.
TEST(Dependencies, WhatFetchesBesideTilesBeginsWithThemAndHoldsUpNoTile) {
  Timeline timeline;
  timeline.wiring.ranks = 1;
  for (const int lane : {0, 2, 3, 4}) {
    timeline.tracks.push_back(
        {.stage = Stage::dispatch_gemm, .role = Role::compute, .block = 5, .lane = lane});
  }
  const auto pull = [](std::int64_t begin, std::int64_t end, std::uint32_t track, int token) {
    return Event{.begin_ns = begin, .end_ns = end, .track = track, .token = token};
  };
  const auto tile = [](std::int64_t begin, std::int64_t end, Kind kind) {
    return Event{.begin_ns = begin, .end_ns = end, .row_block = 0, .index = 0, .kind = kind};
  };
  timeline.events = {tile(42, 60, Kind::gate_wait),
                     tile(60, 90, Kind::mainloop),
                     pull(0, 20, 1, 0),
                     pull(20, 38, 1, 1),
                     pull(0, 40, 2, 2),
                     pull(40, 41, 3, 3),
                     pull(41, 70, 3, 4)};
  for (Event& event : timeline.events) {
    event.kind = event.token >= 0 ? Kind::pull : event.kind;
  }
  const Dependencies dependencies(timeline);
  EXPECT_EQ(dependencies.previous_on_track(5), 4U);  // the slot that was through last
  EXPECT_EQ(dependencies.previous_on_track(6), 5U);
  EXPECT_EQ(dependencies.previous_on_track(0), 4U);  // not token 3, which ended later
  EXPECT_EQ(dependencies.previous_on_track(1), 0U);
  EXPECT_EQ(dependencies.previous_on_track(2), kNone);
  EXPECT_EQ(dependencies.previous_on_track(4), kNone);
}

TEST(Dependencies, AnythingMayBeAskedOfAnyTimeline) {
  Timeline timeline = tiny_layer();
  timeline.events[3].token = 1 << 20;
  timeline.events[4].peer = -7;
  timeline.wiring.hit_row_block[0].resize(3);
  const Dependencies dependencies(timeline);
  for (int wild : {-5, -1, 0, 1, 2, 1000, 1 << 30}) {
    dependencies.phase(wild, Kind::barrier, wild);
    dependencies.of_token(0, Kind::pull, wild);
    dependencies.of_token(wild, Kind::mainloop, 0);
    dependencies.opening_arrive(wild, wild);
    dependencies.readying_epilogue(wild, wild);
    dependencies.watermark(wild, wild, wild);
    dependencies.last_of_stage(wild, Stage::stream);
  }
  const Timeline empty;
  EXPECT_EQ(Dependencies(empty).last_to_enter(Kind::barrier, 0), kNone);
}

}  // namespace
}  // namespace fusescope::timeline
