// In-kernel records that are not as tidy as a simulator's: warps that run ahead of each other, full
// buffers, records that are missing or stand in the wrong place.

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <stdexcept>

#include "record_tape.hpp"
#include "timeline/checks.hpp"
#include "timeline/dependencies.hpp"
#include "timeline/labels.hpp"

namespace fusescope::timeline {
namespace {

// One rank, four tokens with one hit each, two row blocks of two tiles in both kernels.
RecordedWork small_work() {
  RecordedWork work;
  work.ranks = 1;
  work.tokens = 4;
  work.row_blocks = 2;
  work.n_tiles_1 = work.n_tiles_2 = 2;
  work.dispatch_compute_blocks = 1;
  work.dispatch_slot_blocks = 1;
  work.slots_per_block = 2;
  work.combine_compute_blocks = 1;
  work.combine_job_blocks = 1;
  work.job_groups_per_block = 1;
  work.all_hands = true;
  work.reduce_blocks = 1;
  return work;
}

Wiring small_wiring() {
  Wiring wiring;
  wiring.ranks = 1;
  wiring.tokens_per_rank = 4;
  wiring.topk = 1;
  wiring.n_tiles_1 = wiring.n_tiles_2 = 2;
  wiring.hit_row_block = {{0, 0, 1, 1}};
  wiring.expert_of_row_block = {{0, 1}};
  return wiring;
}

struct Decoded {
  Timeline timeline;
  DecodeReport report;

  std::vector<Event> of(Kind kind, Stage stage) const {
    std::vector<Event> events;
    for (const Event& event : timeline.events) {
      if (event.kind == kind && timeline.tracks[event.track].stage == stage) {
        events.push_back(event);
      }
    }
    std::sort(events.begin(), events.end(),
              [](const Event& a, const Event& b) { return a.begin_ns < b.begin_ns; });
    return events;
  }
  int lane(const Event& event) const { return timeline.tracks[event.track].lane; }
};

Decoded decode(const RankRecords& records, int ranks = 1) {
  Decoded decoded;
  decoded.timeline.wiring = small_wiring();
  decoded.timeline.wiring.ranks = ranks;
  decoded.report = decode_records({&records, 1}, decoded.timeline);
  return decoded;
}

class Tape : public testing::Test {
 protected:
  // Phases around everything, so that times come out as they go in.
  Tape() : tape(lay_out_records(small_work())) {
    tape.stamp(Phase::dispatch_gemm, 0, 10'000);
    tape.stamp(Phase::gemm_combine_push, 10'000, 20'000);
    tape.stamp(Phase::final_reduce, 20'000, 30'000);
  }
  void token(int slot, std::uint64_t at, int token) {
    tape.write(Family::dispatch_slots, 0, slot, at, Point::pull_issued, token);
    tape.write(Family::dispatch_slots, 0, slot, at + 10, Point::pull_landed, token);
    tape.write(Family::dispatch_slots, 0, slot, at + 20, Point::scattered, token);
    tape.write(Family::dispatch_slots, 0, slot, at + 30, Point::counted, token);
  }
  void tile(Family family, int row_block, int n_tile, std::uint64_t gate, std::uint64_t open,
            std::uint64_t begin, std::uint64_t end, std::uint64_t staged, std::uint64_t stored) {
    tape.write(family, 0, kProducer, gate, Point::gate_begin, row_block, n_tile);
    tape.write(family, 0, kProducer, open, Point::gate_end, row_block, n_tile);
    tape.write(family, 0, kConsumer, begin, Point::mainloop_begin, row_block, n_tile);
    tape.write(family, 0, kConsumer, end, Point::mainloop_end, row_block, n_tile);
    tape.write(family, 0, kConsumer, staged, Point::epilogue_end, row_block, n_tile);
    if (stored > 0) {
      tape.write(family, 0, kStorer0, stored, Point::stored, row_block, n_tile);
    }
  }

  RecordTape tape;
};

TEST_F(Tape, TokensOfASlotAreOneLane) {
  token(0, 100, 1);
  token(1, 105, 0);
  token(0, 130, 2);
  const Decoded decoded = decode(tape.read(0));
  EXPECT_EQ(decoded.report.records, 12U);
  EXPECT_EQ(decoded.report.incomplete, 0U);
  const auto pulls = decoded.of(Kind::pull, Stage::dispatch_gemm);
  ASSERT_EQ(pulls.size(), 3U);
  EXPECT_EQ(pulls[0].token, 1);
  EXPECT_EQ(pulls[0].peer, 0);
  EXPECT_EQ(pulls[0].end_ns, 110);
  EXPECT_EQ(decoded.lane(pulls[0]), 0);
  EXPECT_EQ(decoded.lane(pulls[1]), 1);
  EXPECT_EQ(decoded.of(Kind::arrive, Stage::dispatch_gemm).size(), 3U);
}

TEST_F(Tape, AFullPieceCountsWhatItDropsAndKeepsWhatItHas) {
  for (int i = 0; i < 4; ++i) {  // room for two tokens
    token(0, 100 + 100 * static_cast<std::uint64_t>(i), i);
  }
  const Decoded decoded = decode(tape.read(0));
  EXPECT_EQ(decoded.report.dropped, 8U);
  EXPECT_EQ(decoded.timeline.meta.dropped, 8U);
  EXPECT_EQ(decoded.of(Kind::arrive, Stage::dispatch_gemm).size(), 2U);
  EXPECT_EQ(check(decoded.timeline), "");
}

TEST_F(Tape, ATokenWithoutItsEndIsCountedAndTheNextOneIsWhole) {
  tape.write(Family::dispatch_slots, 0, 0, 50, Point::pull_issued, 3);
  tape.write(Family::dispatch_slots, 0, 0, 60, Point::pull_landed, 3);
  token(0, 100, 1);
  tape.write(Family::dispatch_slots, 0, 1, 70, Point::pull_issued, 2);  // the launch was aborted
  const Decoded decoded = decode(tape.read(0));
  EXPECT_EQ(decoded.report.incomplete, 2U);
  EXPECT_EQ(decoded.timeline.meta.dropped, 2U);
  EXPECT_NE(decoded.report.first_incomplete.find("token slots, block 0, writer 0"),
            std::string::npos)
      << decoded.report.first_incomplete;
  EXPECT_EQ(decoded.of(Kind::arrive, Stage::dispatch_gemm).size(), 1U);
}

TEST_F(Tape, PointsInTheWrongOrderMakeNoEvent) {
  tape.write(Family::dispatch_slots, 0, 0, 50, Point::scattered, 3);
  tape.write(Family::dispatch_slots, 0, 0, 60, Point::pull_issued, 3);
  tape.write(Family::dispatch_slots, 0, 0, 70, Point::scattered, 3);
  tape.write(Family::dispatch_slots, 0, 0, 80, Point::pull_landed, 77);  // there is no such token
  tape.write(Family::combine_jobs, 0, kSummer, 50, Point::summed, 1);
  tape.write(Family::combine_jobs, 0, kSummer, 60, Point::sum_begin, 1);
  tape.write(Family::combine_jobs, 0, kPusher, 60, Point::pushed, 1);
  tape.write(Family::combine_jobs, 0, kPusher, 60, Point::gate_end, 1);
  tape.write(Family::reduce, 0, 0, 60, Point::reduce_end, -1, 0);
  tape.write(Family::dispatch_tiles, 0, kConsumer, 60, Point::mainloop_end, 0, 0);
  tape.write(Family::dispatch_tiles, 0, kConsumer, 60, Point::epilogue_end, 0, 9);
  const Decoded decoded = decode(tape.read(0));
  EXPECT_GE(decoded.report.incomplete, 9U);
  for (const Event& event : decoded.timeline.events) {
    EXPECT_TRUE(is_stream_phase(event.kind)) << name(event.kind);
  }
  EXPECT_EQ(check(decoded.timeline), "");
}

TEST_F(Tape, AClockThatSeemsToGoBackTurnsNoSliceAround) {
  tape.write(Family::dispatch_slots, 0, 0, 500, Point::pull_issued, 3);
  tape.write(Family::dispatch_slots, 0, 0, 400, Point::pull_landed, 3);
  tape.write(Family::dispatch_slots, 0, 0, 600, Point::scattered, 3);
  tape.write(Family::dispatch_slots, 0, 0, 700, Point::counted, 3);
  const Decoded decoded = decode(tape.read(0));
  const auto pulls = decoded.of(Kind::pull, Stage::dispatch_gemm);
  ASSERT_EQ(pulls.size(), 1U);
  EXPECT_EQ(pulls[0].end_ns, pulls[0].begin_ns);
}

// The producer asks for the next tile while this one is multiplied; only what the block waits counts.
TEST_F(Tape, AGateWaitBeginsWhenTheBlockHasNothingLeftToCompute) {
  tile(Family::dispatch_tiles, 0, 0, 100, 200, 210, 300, 320, 0);
  tile(Family::dispatch_tiles, 0, 1, 205, 250, 330, 400, 420, 0);  // opens in time
  tile(Family::dispatch_tiles, 1, 0, 260, 500, 510, 600, 620, 0);  // does not
  const Decoded decoded = decode(tape.read(0));
  const auto waits = decoded.of(Kind::gate_wait, Stage::dispatch_gemm);
  ASSERT_EQ(waits.size(), 2U);
  EXPECT_EQ(waits[0].begin_ns, 100);
  EXPECT_EQ(waits[0].end_ns, 200);
  EXPECT_EQ(waits[1].row_block, 1);
  EXPECT_EQ(waits[1].begin_ns, 420) << "the tile before is done";
  EXPECT_EQ(waits[1].end_ns, 500);
  const auto mainloops = decoded.of(Kind::mainloop, Stage::dispatch_gemm);
  ASSERT_EQ(mainloops.size(), 3U);
  EXPECT_EQ(mainloops[0].begin_ns, 200) << "the fill of the first stage is the mainloop's";
  EXPECT_EQ(mainloops[1].begin_ns, 320) << "from when the consumers are free";
  EXPECT_EQ(decoded.timeline.tracks.size(), 2U) << "one lane, and the stream";
}

// Kernel 2 stores a tile under the next one's mainloop.
TEST_F(Tape, OverlappingEpiloguesHaveALaneAndFollowTheirMainloop) {
  tile(Family::combine_tiles, 0, 0, 10'000, 10'001, 10'010, 10'100, 10'120, 10'180);
  tile(Family::combine_tiles, 0, 1, 10'002, 10'003, 10'130, 10'230, 10'250, 10'300);
  tile(Family::combine_tiles, 1, 0, 10'004, 10'005, 10'260, 10'290, 10'295, 10'390);
  const Decoded decoded = decode(tape.read(0));
  EXPECT_EQ(decoded.report.incomplete, 0U);
  const auto epilogues = decoded.of(Kind::epilogue, Stage::gemm_combine_push);
  ASSERT_EQ(epilogues.size(), 3U);
  EXPECT_EQ(epilogues[0].begin_ns, 10'100);
  EXPECT_EQ(epilogues[0].end_ns, 10'180) << "when it is in global memory";
  EXPECT_EQ(epilogues[2].begin_ns, 10'300) << "the storer was busy";
  EXPECT_TRUE(decoded.of(Kind::gate_wait, Stage::gemm_combine_push).empty());
  const Dependencies dependencies(decoded.timeline);
  int followed = 0;
  for (Dependencies::EventId id = 0; id < decoded.timeline.events.size(); ++id) {
    const Event& event = decoded.timeline.events[id];
    if (event.kind == Kind::epilogue && event.row_block == 0) {
      EXPECT_EQ(decoded.lane(event), kEpilogueLane);
      const Event& before = dependencies.event(dependencies.previous_on_track(id));
      EXPECT_EQ(before.kind, Kind::mainloop);
      EXPECT_EQ(before.index, event.index);
      ++followed;
    }
  }
  EXPECT_EQ(followed, 2);
}

// Claims run ahead by one job, pushes complete one job later.
class Jobs : public Tape {
 protected:
  void write(Family family) {
    const auto front = [&](std::uint64_t at, Point point, int a) {
      tape.write(family, 0, kFront, at, point, a);
    };
    const auto summer = [&](std::uint64_t at, Point point, int a) {
      tape.write(family, 0, kSummer, at, point, a);
    };
    const auto pusher = [&](std::uint64_t at, Point point, int a, int b = 0) {
      tape.write(family, 0, kPusher, at, point, a, b);
    };
    tape.job_order = {2, 0, 1, 3};
    front(12'000, Point::claim_begin, -1);
    front(12'010, Point::claimed, 0);
    front(12'010, Point::ready_wait_begin, 2);
    front(12'050, Point::ready, 2);
    front(12'050, Point::claim_begin, -1);
    front(12'060, Point::claimed, 1);
    summer(12'070, Point::fetched, 2);
    summer(12'070, Point::sum_begin, 2);
    summer(12'100, Point::summed, 2);
    pusher(12'105, Point::push_issued, 2);
    front(12'105, Point::ready_wait_begin, 0);
    front(12'105, Point::ready, 0);  // at once
    front(12'110, Point::claim_begin, -1);
    front(12'120, Point::claimed, 4);  // none is left
    summer(12'125, Point::fetched, 0);
    summer(12'125, Point::sum_begin, 0);
    summer(12'160, Point::summed, 0);
    pusher(12'165, Point::push_issued, 0);
    pusher(12'170, Point::pushed, 2);
    pusher(12'180, Point::push_counted, 2);
    pusher(12'300, Point::pushed, 0);
    pusher(12'310, Point::push_counted, 0);
    pusher(12'310, Point::watermark_begin, 0, 0);
    pusher(12'320, Point::watermark_raised, 0, 0);
  }
};

TEST_F(Jobs, LanesHoldWhatOverlapsAndProgramOrderGoesAcrossThem) {
  write(Family::combine_jobs);
  const Decoded decoded = decode(tape.read(0));
  EXPECT_EQ(decoded.report.incomplete, 0U) << decoded.report.first_incomplete;
  const auto claims = decoded.of(Kind::claim, Stage::gemm_combine_push);
  ASSERT_EQ(claims.size(), 2U);
  EXPECT_EQ(claims[0].token, 2);
  EXPECT_EQ(claims[1].token, 0);
  EXPECT_EQ(claims[1].index, 1);
  const auto waits = decoded.of(Kind::ready_wait, Stage::gemm_combine_push);
  ASSERT_EQ(waits.size(), 1U) << "what waited no time is no wait";
  EXPECT_EQ(waits[0].row_block, 1);
  const auto pushes = decoded.of(Kind::push, Stage::gemm_combine_push);
  ASSERT_EQ(pushes.size(), 2U);
  EXPECT_NE(decoded.lane(pushes[0]), decoded.lane(pushes[1]));
  EXPECT_EQ(pushes[0].end_ns, 12'170);
  EXPECT_EQ(pushes[0].peer, 0);

  const Dependencies dependencies(decoded.timeline);
  const auto before = [&](Kind kind, int token) {
    const auto id = dependencies.of_token(0, kind, token);
    return dependencies.event(dependencies.previous_on_track(id));
  };
  EXPECT_EQ(before(Kind::sum, 2).kind, Kind::ready_wait) << "not the claim of the next job";
  EXPECT_EQ(before(Kind::push, 2).kind, Kind::sum);
  EXPECT_EQ(before(Kind::push, 0).token, 0);
  EXPECT_EQ(before(Kind::elect, 0).kind, Kind::push);
  const auto raised = dependencies.watermark(0, 0, 0);
  ASSERT_NE(raised, Dependencies::kNone);
  EXPECT_EQ(dependencies.event(dependencies.previous_on_track(raised)).kind, Kind::elect);
}

TEST_F(Jobs, ABlockThatJoinsGoesOnFromItsTiles) {
  tile(Family::combine_tiles, 0, 0, 10'000, 10'001, 10'010, 10'100, 10'120, 10'180);
  tile(Family::combine_tiles, 0, 1, 10'002, 10'003, 10'130, 10'230, 10'250, 11'900);
  write(Family::combine_joined);
  const Decoded decoded = decode(tape.read(0));
  const Dependencies dependencies(decoded.timeline);
  const auto claim = dependencies.of_token(0, Kind::claim, 2);
  ASSERT_NE(claim, Dependencies::kNone);
  const auto& before = dependencies.event(dependencies.previous_on_track(claim));
  EXPECT_EQ(before.kind, Kind::epilogue);
  EXPECT_EQ(before.end_ns, 11'900);
  EXPECT_EQ(dependencies.track_of(claim).role, Role::compute);
}

TEST_F(Jobs, LanesSayWhatTheyAreFor) {
  tile(Family::combine_tiles, 0, 0, 10'000, 10'001, 10'010, 10'100, 10'120, 10'180);
  tile(Family::combine_tiles, 0, 1, 10'002, 10'003, 10'130, 10'230, 10'250, 11'900);
  write(Family::combine_joined);
  const Decoded decoded = decode(tape.read(0));
  std::vector<std::string> names;
  for (const Track& track : decoded.timeline.tracks) {
    names.push_back(thread_name(track));
  }
  for (const char* wanted :
       {"gemm_combine_push compute block 0", "gemm_combine_push compute block 0 lane 1 (epilogues)",
        "gemm_combine_push compute block 0 lane 2 (claims of warpgroup 0)",
        "gemm_combine_push compute block 0 lane 3 (sums of warpgroup 0)",
        "gemm_combine_push compute block 0 lane 4 (pushes of warpgroup 0)"}) {
    EXPECT_NE(std::find(names.begin(), names.end(), wanted), names.end()) << wanted;
  }
}

TEST_F(Jobs, ABlockPerJobIsOneLane) {
  tape.write(Family::combine_jobs, 0, kFront, 12'000, Point::ready_wait_begin, 0);
  tape.write(Family::combine_jobs, 0, kFront, 12'050, Point::ready, 0);
  tape.write(Family::combine_jobs, 0, kSummer, 12'050, Point::fetched, 0);
  tape.write(Family::combine_jobs, 0, kSummer, 12'050, Point::sum_begin, 0);
  tape.write(Family::combine_jobs, 0, kSummer, 12'090, Point::summed, 0);
  tape.write(Family::combine_jobs, 0, kPusher, 12'090, Point::push_issued, 0);
  tape.write(Family::combine_jobs, 0, kPusher, 12'120, Point::pushed, 0);
  tape.write(Family::combine_jobs, 0, kPusher, 12'130, Point::push_counted, 0);
  RankRecords records = tape.read(0);
  records.block_per_job = true;
  const Decoded decoded = decode(records);
  EXPECT_EQ(decoded.report.incomplete, 0U);
  for (const Event& event : decoded.timeline.events) {
    EXPECT_EQ(decoded.lane(event), 0);
  }
  EXPECT_EQ(decoded.of(Kind::elect, Stage::gemm_combine_push).size(), 1U);
}

TEST_F(Jobs, ASumBeginsWithTheFetchOfItsRows) {
  write(Family::combine_jobs);
  const Decoded decoded = decode(tape.read(0));
  const auto sums = decoded.of(Kind::sum, Stage::gemm_combine_push);
  ASSERT_EQ(sums.size(), 2U);
  EXPECT_EQ(sums[0].begin_ns, 12'050) << "its row blocks were ready";
  EXPECT_EQ(sums[0].end_ns, 12'100);
  EXPECT_EQ(sums[1].begin_ns, 12'105);
}

TEST_F(Jobs, ASumThatWaitedForABufferBeginsWhenThereIsOne) {
  tape.write(Family::combine_jobs, 0, kFront, 12'000, Point::ready_wait_begin, 0);
  tape.write(Family::combine_jobs, 0, kFront, 12'050, Point::ready, 0);
  tape.write(Family::combine_jobs, 0, kSummer, 12'060, Point::fetched, 0);
  tape.write(Family::combine_jobs, 0, kSummer, 12'900, Point::sum_begin, 0);
  tape.write(Family::combine_jobs, 0, kSummer, 12'950, Point::summed, 0);
  const Decoded decoded = decode(tape.read(0));
  const auto sums = decoded.of(Kind::sum, Stage::gemm_combine_push);
  ASSERT_EQ(sums.size(), 1U);
  EXPECT_EQ(sums[0].begin_ns, 12'900);
}

// Both are read after the same barrier, by different warps.
TEST_F(Jobs, APushDoesNotBeginBeforeItsSumHasEnded) {
  tape.write(Family::combine_jobs, 0, kSummer, 12'050, Point::fetched, 0);
  tape.write(Family::combine_jobs, 0, kSummer, 12'050, Point::sum_begin, 0);
  tape.write(Family::combine_jobs, 0, kSummer, 12'090, Point::summed, 0);
  tape.write(Family::combine_jobs, 0, kPusher, 12'058, Point::push_issued, 0);
  tape.write(Family::combine_jobs, 0, kPusher, 12'120, Point::pushed, 0);
  tape.write(Family::combine_jobs, 0, kPusher, 12'130, Point::push_counted, 0);
  const Decoded decoded = decode(tape.read(0));
  const auto pushes = decoded.of(Kind::push, Stage::gemm_combine_push);
  ASSERT_EQ(pushes.size(), 1U);
  EXPECT_EQ(pushes[0].begin_ns, 12'090);
  EXPECT_EQ(pushes[0].end_ns, 12'120);
}

// Its threads wait for all senders at once.
TEST(DecodeReduce, TheWaitIsCutWhereSendersAreSeen) {
  RecordedWork work = small_work();
  work.ranks = 3;
  work.tokens = 12;
  RecordTape tape(lay_out_records(work));
  tape.stamp(Phase::final_reduce, 0, 1000);
  for (int sender = 0; sender < 3; ++sender) {
    constexpr std::uint64_t kSeen[] = {400, 200, 100};
    tape.write(Family::reduce, 0, sender, 100, Point::watermark_wait_begin, sender);
    tape.write(Family::reduce, 0, sender, kSeen[sender], Point::watermark_seen, sender);
  }
  tape.write(Family::reduce, 0, 0, 420, Point::reduce_begin);
  tape.write(Family::reduce, 0, 0, 600, Point::reduce_end);
  const Decoded decoded = decode(tape.read(0), 3);
  EXPECT_EQ(decoded.report.incomplete, 0U);
  const auto waits = decoded.of(Kind::reduce_wait, Stage::final_reduce);
  ASSERT_EQ(waits.size(), 2U) << "sender 2 kept nobody waiting";
  EXPECT_EQ(waits[0].peer, 1);
  EXPECT_EQ(waits[0].end_ns, 200);
  EXPECT_EQ(waits[1].peer, 0);
  EXPECT_EQ(waits[1].begin_ns, 200);
  ASSERT_EQ(decoded.of(Kind::reduce, Stage::final_reduce).size(), 1U);
}

TEST_F(Tape, TokensThatComputeBlocksFetchPrecedeTheirTiles) {
  token(0, 100, 0);
  token(1, 100, 1);
  tile(Family::dispatch_tiles, 0, 0, 140, 200, 210, 300, 320, 0);
  RankRecords records = tape.read(0);
  records.fetches_first = true;
  const Decoded decoded = decode(records);
  const Dependencies dependencies(decoded.timeline);
  int gates = 0;
  for (Dependencies::EventId id = 0; id < decoded.timeline.events.size(); ++id) {
    EXPECT_NE(dependencies.track_of(id).role, Role::communication);
    if (dependencies.event(id).kind == Kind::gate_wait) {
      EXPECT_EQ(dependencies.event(dependencies.previous_on_track(id)).kind, Kind::arrive);
      ++gates;
    }
  }
  EXPECT_EQ(gates, 1);
}

TEST_F(Tape, PhasesTileTheStream) {
  tape.stamp(Phase::ids_exchange, 100, 200);
  tape.stamp(Phase::schedule_build, UINT64_MAX, 500);  // nobody saw its begin
  tape.stamp(Phase::entry_barrier, 510, 600);
  tape.stamp(Phase::dispatch_gemm, 700, 1000);
  tape.stamp(Phase::gemm_combine_push, 990, 1500);  // the clock of another block
  tape.stamp(Phase::final_reduce, 1510, 1600);
  const Decoded decoded = decode(tape.read(0));
  EXPECT_EQ(decoded.report.origin_ns, 100);
  EXPECT_EQ(decoded.timeline.wall_ns(), 1500);
  const auto built = decoded.of(Kind::schedule_build, Stage::stream);
  ASSERT_EQ(built.size(), 1U);
  EXPECT_EQ(built[0].begin_ns, 100);
  EXPECT_EQ(decoded.of(Kind::gemm_combine_push, Stage::stream).at(0).begin_ns, 900);
  EXPECT_EQ(decoded.of(Kind::copy_in, Stage::stream).size(), 0U);
  EXPECT_EQ(check(decoded.timeline), "");
}

// What a crashed launch or a wild store leaves behind: no event of it may be followed off a table.
TEST_F(Tape, DamagedBuffersGiveATimelineThatCanBeChecked) {
  for (unsigned seed = 0; seed < 200; ++seed) {
    std::mt19937 random(seed);
    const auto pick = [&](int least, int most) {
      return std::uniform_int_distribution<int>(least, most)(random);
    };
    for (Record& record : tape.records) {
      record.ns = static_cast<std::uint64_t>(pick(0, 30'000));
      record.a = pick(0, 9) == 0 ? pick(INT32_MIN, INT32_MAX) : pick(-1, 5);
      record.b = static_cast<std::uint16_t>(pick(0, 9) == 0 ? pick(0, 65'535) : pick(0, 2));
      record.point = static_cast<Point>(pick(0, 19) == 0 ? 0 : pick(1, kPoints + 3));
    }
    RankRecords records = tape.read(0);
    records.fetches_first = seed % 2 == 0;
    records.block_per_job = seed % 3 == 0;
    Decoded decoded = decode(records);
    EXPECT_GT(decoded.report.incomplete, 0U);
    EXPECT_EQ(check_structure(decoded.timeline), "");
    static_cast<void>(check(decoded.timeline));
    const Dependencies dependencies(decoded.timeline);
    for (Dependencies::EventId id = 0; id < decoded.timeline.events.size(); ++id) {
      int steps = 0;  // program order comes to an end
      for (auto at = id; at != Dependencies::kNone; at = dependencies.previous_on_track(at)) {
        ASSERT_LE(++steps, 10'000);
      }
    }
  }
}

TEST_F(Tape, BuffersOfAnotherLayoutAreRefused) {
  RankRecords records = tape.read(0);
  records.records = records.records.first(3);
  Timeline timeline;
  EXPECT_THROW(decode_records({&records, 1}, timeline), std::invalid_argument);
}

}  // namespace
}  // namespace fusescope::timeline
