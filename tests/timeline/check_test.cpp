// check(): consistent timelines pass; each kind of damage is found and named by track and time.

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include "timeline/dependencies.hpp"
#include "timeline/timeline.hpp"
#include "tiny_layer.hpp"

namespace fusescope::timeline {
namespace {

// The event of a kind on a rank whose token (or row block) is `key`.
Event& find(Timeline& timeline, Kind kind, int rank, int key) {
  for (Event& event : timeline.events) {
    if (event.kind == kind && timeline.tracks[event.track].rank == rank &&
        (event.token == key || (event.token < 0 && event.row_block == key) ||
         (event.token < 0 && event.row_block < 0 && event.peer == key))) {
      return event;
    }
  }
  throw std::logic_error("no such event");
}

TEST(Check, ConsistentTimelinesPass) {
  EXPECT_EQ(check(tiny_layer()), "");
  EXPECT_EQ(check(tiny_layer({.ranks = 1})), "");
  EXPECT_EQ(check(tiny_layer({.merged = true})), "");
  EXPECT_EQ(check(tiny_layer({.row_blocks = 4, .n_tiles_2 = 3, .merged = true})), "");
  EXPECT_EQ(check(tiny_layer({.ranks = 4,
                              .tokens_per_rank = 64,
                              .topk = 4,
                              .row_blocks = 16,
                              .n_tiles_1 = 3,
                              .n_tiles_2 = 5,
                              .compute_blocks = 7,
                              .lanes = 24,
                              .job_blocks = 3})),
            "");
  EXPECT_EQ(check(tiny_layer(seed_sized())), "");
  EXPECT_EQ(check(Timeline{}), "");
}

// Where all ranks have the tokens of all, no pull crosses a link.
TEST(Check, PushedTokensArePulledFromTheRankItself) {
  Timeline timeline = tiny_layer();
  for (Event& event : timeline.events) {
    if (event.kind == Kind::pull) {
      event.peer = static_cast<std::int16_t>(timeline.tracks[event.track].rank);
    }
  }
  EXPECT_EQ(check(timeline), "");
  find(timeline, Kind::pull, 0, 5).peer = 1;
  EXPECT_NE(check(timeline).find("but the token's source rank is 1"), std::string::npos);
}

struct Damage {
  std::string name;
  std::function<void(Timeline&)> harm;
  std::string found;  // part of the violation
};

void PrintTo(const Damage& damage, std::ostream* out) {
  *out << damage.name;
}

class CheckFinds : public testing::TestWithParam<Damage> {};

TEST_P(CheckFinds, Damage) {
  Timeline timeline = tiny_layer();
  GetParam().harm(timeline);
  const std::string fault = check(timeline);
  EXPECT_NE(fault.find(GetParam().found), std::string::npos) << fault;
}

std::vector<Damage> damages() {
  return {
      Damage{"OverlapOnATrack", [](Timeline& t) { find(t, Kind::mainloop, 1, 2).end_ns += 5; },
             "rank 1 dispatch_gemm compute block 0 at 715 ns: epilogue overlaps the mainloop"},
      Damage{"MissingArgument", [](Timeline& t) { find(t, Kind::scatter, 0, 3).token = -1; },
             "scatter has token -1, expected [0, 8)"},
      Damage{"ArgumentThatTheKindDoesNotCarry",
             [](Timeline& t) { find(t, Kind::scatter, 0, 3).peer = 1; },
             "scatter has peer 1, which this kind does not carry"},
      Damage{"RowBlockBeyondTheWiring",
             [](Timeline& t) { find(t, Kind::mainloop, 0, 2).row_block = 3; },
             "mainloop has row_block 3, expected [0, 3)"},
      Damage{"WrongSourceRank", [](Timeline& t) { find(t, Kind::pull, 0, 5).peer = 0; },
             "pull of token 5 has peer 0, but the token's source rank is 1"},
      Damage{"OutsideTheWall", [](Timeline& t) { t.end_ns -= 1; }, "outside the wall"},
      Damage{"WallLongerThanThePhases", [](Timeline& t) { t.end_ns += 1; }, "the wall is from"},
      Damage{"EndsBeforeItBegins", [](Timeline& t) { find(t, Kind::pull, 0, 0).end_ns = 0; },
             "pull ends before it begins"},
      Damage{"PhasesOutOfOrder", [](Timeline& t) { std::swap(t.events[1].kind, t.events[3].kind); },
             "rank 0 stream at 200 ns: barrier comes after copy_in, expected before it"},
      Damage{"BlockOutsideItsKernel",
             [](Timeline& t) {
               for (Event& event : t.events) {
                 event.end_ns -= event.kind == Kind::dispatch_gemm;
               }
             },
             "lies outside its dispatch_gemm phase"},
      Damage{"TokenChangesLane",
             [](Timeline& t) {
               std::swap(find(t, Kind::arrive, 0, 0).token, find(t, Kind::arrive, 0, 1).token);
             },
             "its scatter is on rank 0 dispatch_gemm communication block 2 lane"},
      Damage{"GateOpensBeforeTheLastArrive",
             [](Timeline& t) {
               for (Event& event : t.events) {
                 if (event.kind == Kind::gate_wait && event.end_ns - event.begin_ns > 30) {
                   event.end_ns -= 30;
                   return;
                 }
               }
             },
             "before its cause: arrive of token"},
      Damage{"JobBeforeItsRowBlocks",
             [](Timeline& t) {
               Event& wait = find(t, Kind::ready_wait, 0, 0);
               wait.end_ns = wait.begin_ns;
             },
             "before its cause: epilogue of row block"},
      Damage{"ReduceBeforeTheWatermark",
             [](Timeline& t) { find(t, Kind::reduce_wait, 0, 1).end_ns -= 15; },
             "before its cause: watermark with rank 0 on rank 1 gemm_combine_push"},
      Damage{"WatermarkBeforeAPush",
             [](Timeline& t) {
               // The jobs of tokens 3 and 4 change places, and with them the ranks they go to.
               for (Event& event : t.events) {
                 if (t.tracks[event.track].stage == Stage::gemm_combine_push &&
                     (event.token == 3 || event.token == 4)) {
                   event.token = 7 - event.token;
                   event.peer = static_cast<std::int16_t>(event.peer < 0 ? -1 : 1 - event.peer);
                 }
               }
             },
             "watermark with rank 0 begins before the push of token 3 ends"},
      Damage{"ReduceWithoutWaiting",
             [](Timeline& t) {
               std::erase_if(t.events,
                             [](const Event& event) { return event.kind == Kind::reduce_wait; });
               for (Event& event : t.events) {
                 if (event.kind == Kind::reduce && t.tracks[event.track].rank == 0) {
                   event.begin_ns -= 20;
                 }
               }
             },
             "reduce begins before the watermark of rank 1 is visible"},
      Damage{"LostWatermark",
             [](Timeline& t) {
               std::erase_if(t.events,
                             [](const Event& event) { return event.kind == Kind::watermark; });
             },
             "raised no watermark"},
      Damage{"BarrierLeftTooEarly",
             [](Timeline& t) {
               for (Event& event : t.events) {
                 if (event.kind == Kind::barrier && event.begin_ns == 200) {
                   event.end_ns = 209;
                 }
               }
             },
             "barrier ends at 209 ns, before its cause: barrier on rank 1 stream begins at 210"},
      Damage{"TokenArrivesTwice",
             [](Timeline& t) {
               Event& late = find(t, Kind::claim, 0, 7);
               late.token = 6;
             },
             "claim of token 6 is there twice"},
      Damage{"TokenNeverArrives",
             [](Timeline& t) {
               const std::uint32_t lane = find(t, Kind::arrive, 0, 0).track;
               std::erase_if(t.events, [lane](const Event& event) {
                 return event.token == 0 && event.track == lane;
               });
             },
             "rank 0: 7 of 8 tokens arrive"},
      Damage{"TileLost",
             [](Timeline& t) {
               std::erase_if(t.events, [](const Event& event) {
                 return event.kind == Kind::epilogue && event.row_block == 1 && event.index == 1;
               });
             },
             "row block 1 has 1 of 2 epilogues in GEMM 1"},
      Damage{"Unsorted", [](Timeline& t) { std::swap(t.events[0], t.events[5]); },
             "events are not sorted"},
      Damage{"TrackTwice", [](Timeline& t) { t.tracks[1] = t.tracks[0]; },
             "rank 0 stream is there twice"},
      Damage{"EventOnNoTrack", [](Timeline& t) { t.events.back().track = 999; }, "is on track 999"},
      Damage{"CounterGoesBack", [](Timeline& t) { t.counters[0].time_ns[0] = 1 << 20; },
             "goes back in time"},
      Damage{"AWallOfCenturies", [](Timeline& t) { t.end_ns += 1LL << 60; },
             "ns is longer than any iteration"},
      Damage{"WiringTooShort", [](Timeline& t) { t.wiring.hit_row_block[1].pop_back(); },
             "rank 1 has 15 hits, expected 16"},
      Damage{"NobodysTile",
             [](Timeline& t) {
               t.wiring.tile_of_row_block = {{0, 1, 1}, {0, 1, 2}};
             },
             "rank 0 row block 2 is in the tiles of row block 1, expected its own"},
      Damage{"TileOfARowBlockBehind",
             [](Timeline& t) {
               t.wiring.tile_of_row_block = {{0, 1, 2}, {1, 1, 2}};
             },
             "rank 1 row block 0 is in the tiles of row block 1, expected its own"},
      Damage{"TilesOfTooFewRowBlocks",
             [](Timeline& t) {
               t.wiring.tile_of_row_block = {{0, 1}, {0, 1, 2}};
             },
             "rank 0 has tiles of 2 row blocks, expected 3"},
      Damage{"TilesOfTooFewRanks",
             [](Timeline& t) {
               t.wiring.tile_of_row_block = {{0, 1, 2}};
             },
             "tile_of_row_block has 1 ranks, expected 2"},
      Damage{"TilesWhereTheWiringHasNone",
             [](Timeline& t) {
               t.wiring.tile_of_row_block = {{0, 0, 2}, {0, 0, 2}};
             },
             "row block 1 has 2 of 0 epilogues in GEMM 1"}};
}

INSTANTIATE_TEST_SUITE_P(All, CheckFinds, testing::ValuesIn(damages()),
                         [](const auto& each) { return each.param.name; });

TEST(Check, TheClockBoundExcusesWhatClocksCannotTell) {
  Timeline timeline = tiny_layer();
  for (Event& event : timeline.events) {
    if (event.kind == Kind::barrier && event.begin_ns == 200) {
      event.end_ns = 205;
    }
  }
  EXPECT_NE(check(timeline), "");
  timeline.meta.clock_bound_ns = 5;
  EXPECT_EQ(check(timeline), "");
}

// A device counts a token's arrivals one after the other, and any of them may open a gate.
TEST(Check, AMeasuredGateMayOpenWhileArrivalsAreCounted) {
  Timeline timeline = tiny_layer();
  timeline.meta.provenance = Provenance::measured;
  for (Event& event : timeline.events) {  // beyond what a measurement is excused anyway
    event.begin_ns *= 10'000;
    event.end_ns *= 10'000;
  }
  timeline.begin_ns *= 10'000;
  timeline.end_ns *= 10'000;
  for (Counter& counter : timeline.counters) {
    for (std::int64_t& time : counter.time_ns) {
      time *= 10'000;
    }
  }
  ASSERT_EQ(check(timeline), "");
  const Dependencies dependencies(timeline);
  Dependencies::EventId gate = 0;
  const auto waits_for_an_arrival = [&](Dependencies::EventId id) {
    return timeline.events[id].kind == Kind::gate_wait &&
           dependencies.cause(id) != Dependencies::kNone &&
           timeline.events[dependencies.cause(id)].begin_ns > timeline.events[id].begin_ns + 10'000;
  };
  while (!waits_for_an_arrival(gate)) {
    ++gate;
  }
  const std::int64_t begin = timeline.events[dependencies.cause(gate)].begin_ns;
  timeline.events[gate].end_ns = begin;
  EXPECT_EQ(check(timeline), "");
  timeline.events[gate].end_ns = begin - 5'000;
  EXPECT_NE(check(timeline).find("before its cause: arrive of token"), std::string::npos);
}

// Blocks of kernel 2 may begin while kernel 1 runs where the timeline says so, tiles of it never before
// kernel 1 has their activations.
TEST(Check, OverlappingKernels) {
  Timeline timeline = tiny_layer();
  std::erase_if(timeline.events, [](const Event& event) {
    return event.kind == Kind::activation || event.kind == Kind::dispenser_reset;
  });
  Event* tile = nullptr;
  for (Event& event : timeline.events) {
    if (event.kind == Kind::mainloop && tile == nullptr &&
        timeline.tracks[event.track].stage == Stage::gemm_combine_push) {
      tile = &event;
    }
  }
  ASSERT_NE(tile, nullptr);
  const int rank = timeline.tracks[tile->track].rank;
  std::int64_t activated = 0;
  for (const Event& event : timeline.events) {
    const Track& track = timeline.tracks[event.track];
    if (event.kind == Kind::epilogue && track.rank == rank && track.stage == Stage::dispatch_gemm &&
        event.row_block == tile->row_block) {
      activated = std::max(activated, event.end_ns);
    }
  }
  tile->begin_ns = activated;
  const std::string apart = check(timeline);
  EXPECT_NE(apart.find("lies outside its gemm_combine_push phase"), std::string::npos) << apart;
  timeline.meta.programmatic = true;
  EXPECT_EQ(check(timeline), "");
  tile->begin_ns = activated - 1;
  const std::string early = check(timeline);
  EXPECT_NE(early.find("begins before kernel 1 has its activations"), std::string::npos) << early;
}

TEST(Check, LostRecordsExcuseMissingEvents) {
  Timeline timeline = tiny_layer();
  std::erase_if(timeline.events, [](const Event& event) { return event.kind == Kind::watermark; });
  timeline.meta.dropped = 4;
  EXPECT_EQ(check(timeline), "");
}

}  // namespace
}  // namespace fusescope::timeline
