// One rule of the walk per test, on timelines whose path can be read off.

#include "analysis/critical_path.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "analysis/wait_table.hpp"
#include "hand_made.hpp"

namespace fusescope::analysis {
namespace {

using timeline::Kind;
using timeline::Role;
using timeline::Stage;

// The path as stretches of one step: {begin, end, step}.
struct Stretch {
  std::int64_t begin_ns;
  std::int64_t end_ns;
  Step step;
  bool operator==(const Stretch&) const = default;
};

std::ostream& operator<<(std::ostream& out, const Stretch& stretch) {
  return out << name(stretch.step) << " [" << stretch.begin_ns << ", " << stretch.end_ns << ")";
}

std::vector<Stretch> stretches(const CriticalPath& path) {
  std::vector<Stretch> stretches;
  for (const Segment& segment : path.segments) {
    if (!stretches.empty() && stretches.back().step == segment.step) {
      stretches.back().end_ns = segment.end_ns;
    } else {
      stretches.push_back({segment.begin_ns, segment.end_ns, segment.step});
    }
  }
  return stretches;
}

// One rank, one compute block and two lanes in kernel 1; tokens 0..3, row blocks 0 and 1 open with tokens
// 1 and 3.
HandMade kernel_1() {
  HandMade made(1, 4, 1);
  made.wiring().hit_row_block = {{0, 0, 1, 1}};
  made.wiring().expert_of_row_block = {{0, 1}};
  made.phase(0, Kind::dispatch_gemm, 100, 300);
  return made;
}

void move_token(HandMade& made, std::uint32_t lane, int token, std::int64_t begin,
                std::int64_t landed) {
  made.event(lane, Kind::pull, begin, landed, {.token = token, .peer = 0});
  made.event(lane, Kind::scatter, landed, landed + 5, {.token = token});
  made.event(lane, Kind::arrive, landed + 5, landed + 10, {.token = token});
}

void move_token(HandMade& made, std::uint32_t lane, int token, std::int64_t begin) {
  move_token(made, lane, token, begin, begin + 20);
}

void tile(HandMade& made, std::uint32_t block, int row_block, std::int64_t wait, std::int64_t open,
          std::int64_t end) {
  made.event(block, Kind::gate_wait, wait, open, {.row_block = row_block, .index = 0});
  made.event(block, Kind::mainloop, open, end - 5, {.row_block = row_block, .index = 0});
  made.event(block, Kind::epilogue, end - 5, end, {.row_block = row_block, .index = 0});
}

TEST(CriticalPath, GatesLeadToTheTokensThatOpenedThem) {
  HandMade made = kernel_1();
  const auto compute = made.track(0, Stage::dispatch_gemm, Role::compute, 0);
  const auto lane_0 = made.track(0, Stage::dispatch_gemm, Role::communication, 1, 0);
  const auto lane_1 = made.track(0, Stage::dispatch_gemm, Role::communication, 1, 1);
  move_token(made, lane_0, 0, 100);
  move_token(made, lane_1, 1, 101);  // opens row block 0 at 131
  move_token(made, lane_0, 2, 130);
  move_token(made, lane_1, 3, 131, 190);  // opens row block 1 at 200
  tile(made, compute, 0, 100, 133, 180);
  tile(made, compute, 1, 180, 204, 300);
  const CriticalPath path = critical_path(made.build());
  EXPECT_EQ(stretches(path), (std::vector<Stretch>{
                                 {100, 101, Step::launch_gap},
                                 {101, 133, Step::dispatch_head},  // first tile starts at 133
                                 {133, 204, Step::dispatch_bandwidth},
                                 {204, 300, Step::gemm_1},
                             }));
  EXPECT_EQ(path.by_kind[static_cast<std::size_t>(Kind::pull)], 20 + 59);
  EXPECT_EQ(path.by_kind[static_cast<std::size_t>(Kind::gate_wait)], 4);
  EXPECT_EQ(path.by_source_rank, (std::vector<std::int64_t>{20 + 59}));
  ASSERT_EQ(path.by_token.size(), 2U);
  EXPECT_EQ(path.by_token[0].token, 3);
  EXPECT_EQ(path.by_token[0].ns, 69);
  EXPECT_EQ(path.causes_missing, 0);
}

// Row block 1 goes with row block 0: what it needs is needed by the tile, whichever gate opens last.
TEST(CriticalPath, ATileNeedsTheTokensOfAllItsRowBlocks) {
  for (const bool merged : {true, false}) {
    HandMade made = kernel_1();
    made.wiring().expert_of_row_block = {{0, 0}};
    if (merged) {
      made.wiring().tile_of_row_block = {{0, 0}};
    }
    const auto compute = made.track(0, Stage::dispatch_gemm, Role::compute, 0);
    const auto lane_0 = made.track(0, Stage::dispatch_gemm, Role::communication, 1, 0);
    const auto lane_1 = made.track(0, Stage::dispatch_gemm, Role::communication, 1, 1);
    move_token(made, lane_0, 0, 100);
    move_token(made, lane_0, 2, 130);
    move_token(made, lane_1, 3, 101);
    move_token(made, lane_1, 1, 131, 190);  // opens row block 0 at 200
    tile(made, compute, 0, 100, 204, 300);
    const Step of_token_3 = merged ? Step::dispatch_head : Step::dispatch_order;
    const CriticalPath path = critical_path(made.build());
    const std::int64_t on_path = path.by_step[static_cast<std::size_t>(of_token_3)];
    EXPECT_EQ(on_path, merged ? 204 - 101 : 131 - 101);
    EXPECT_EQ(path.causes_missing, 0);
  }
}

TEST(CriticalPath, DispatchBesideTheWaitingBlocksTilesIsHidden) {
  HandMade made = kernel_1();
  const auto compute = made.track(0, Stage::dispatch_gemm, Role::compute, 0);
  const auto lane = made.track(0, Stage::dispatch_gemm, Role::communication, 1);
  move_token(made, lane, 0, 100);
  move_token(made, lane, 1, 130);
  move_token(made, lane, 2, 160);
  move_token(made, lane, 3, 190, 240);    // opens row block 1 at 250
  tile(made, compute, 0, 100, 160, 220);  // until then the block computes
  tile(made, compute, 1, 220, 250, 300);
  const CriticalPath path = critical_path(made.build());
  EXPECT_EQ(stretches(path), (std::vector<Stretch>{
                                 {100, 160, Step::dispatch_head},
                                 {160, 250, Step::dispatch_bandwidth},
                                 {250, 300, Step::gemm_1},
                             }));
  EXPECT_EQ(path.exposed_by_step[static_cast<std::size_t>(Step::dispatch_head)], 60);
  EXPECT_EQ(path.exposed_by_step[static_cast<std::size_t>(Step::dispatch_bandwidth)], 250 - 220);
  EXPECT_EQ(path.exposed_communication_ns(), 90);
}

TEST(CriticalPath, TokenSlotsOfABlockWaitForNoneOfTheOthers) {
  HandMade made = kernel_1();
  const auto compute = made.track(0, Stage::dispatch_gemm, Role::compute, 0);
  const auto own = made.track(0, Stage::dispatch_gemm, Role::communication, 1, 0);
  const auto other = made.track(0, Stage::dispatch_gemm, Role::communication, 1, 1);
  move_token(made, other, 0, 100, 170);  // counted at 180
  made.event(own, Kind::pull, 100, 120, {.token = 1, .peer = 0});
  made.event(own, Kind::scatter, 180, 190, {.token = 1});  // idle until the other slot was through
  made.event(own, Kind::arrive, 190, 200, {.token = 1});   // opens row block 0
  tile(made, compute, 0, 100, 200, 300);
  const CriticalPath path = critical_path(made.build());
  EXPECT_EQ(path.by_kind[static_cast<std::size_t>(Kind::pull)], 20);
  ASSERT_EQ(path.by_token.size(), 1U);
  EXPECT_EQ(path.by_token[0].token, 1);
  EXPECT_EQ(path.by_token[0].ns, 40);
}

TEST(CriticalPath, AGateThatWasOpenLeadsToTheTileBefore) {
  HandMade made = kernel_1();
  const auto compute = made.track(0, Stage::dispatch_gemm, Role::compute, 0);
  const auto lane = made.track(0, Stage::dispatch_gemm, Role::communication, 1);
  move_token(made, lane, 0, 100);
  move_token(made, lane, 1, 130);
  tile(made, compute, 0, 100, 160, 200);
  tile(made, compute, 0, 200, 202, 300);
  EXPECT_EQ(stretches(critical_path(made.build())), (std::vector<Stretch>{
                                                        {100, 160, Step::dispatch_head},
                                                        {160, 200, Step::gemm_1},
                                                        {200, 202, Step::dispatch_bandwidth},
                                                        {202, 300, Step::gemm_1},
                                                    }));
}

TEST(CriticalPath, TokensThatTheWaitingRowBlockDoesNotNeedAreOrder) {
  HandMade made = kernel_1();
  const auto compute = made.track(0, Stage::dispatch_gemm, Role::compute, 0);
  const auto lane = made.track(0, Stage::dispatch_gemm, Role::communication, 1);
  move_token(made, lane, 2, 100);  // row block 1: not needed by row block 0
  move_token(made, lane, 0, 130);
  move_token(made, lane, 3, 160);  // not needed either
  move_token(made, lane, 1, 190);
  tile(made, compute, 0, 100, 220, 300);
  const CriticalPath path = critical_path(made.build());
  EXPECT_EQ(stretches(path), (std::vector<Stretch>{
                                 {100, 130, Step::dispatch_order},
                                 {130, 160, Step::dispatch_head},
                                 {160, 190, Step::dispatch_order},
                                 {190, 220, Step::dispatch_head},
                                 {220, 300, Step::gemm_1},
                             }));
  EXPECT_EQ(path.segments.front().waiting_row_block, 0);
}

TEST(CriticalPath, BarriersLeadToTheRankThatEnteredLast) {
  HandMade made(2);
  made.phase(0, Kind::ids_exchange, 0, 50);
  made.phase(1, Kind::ids_exchange, 10, 52);
  made.phase(0, Kind::schedule_build, 50, 90);
  made.phase(1, Kind::schedule_build, 60, 80);
  made.phase(0, Kind::barrier, 91, 100, 0);
  made.phase(1, Kind::barrier, 81, 102, 0);
  made.phase(0, Kind::final_reduce, 100, 120);
  made.phase(1, Kind::final_reduce, 105, 130);
  const CriticalPath path = critical_path(made.build());
  EXPECT_EQ(stretches(path), (std::vector<Stretch>{
                                 {0, 10, Step::launch_gap},  // rank 1 started later
                                 {10, 50, Step::ids_exchange},
                                 {50, 90, Step::schedule_build},
                                 {90, 91, Step::launch_gap},
                                 {91, 102, Step::barrier},
                                 {102, 105, Step::launch_gap},
                                 {105, 130, Step::final_reduce},
                             }));
  EXPECT_EQ(path.segments[2].rank, 0);
  EXPECT_EQ(path.unexplained_ns, 0);
  EXPECT_EQ(path.by_rank[0] + path.by_rank[1], 120);
}

// Two ranks; rank 1's only push to rank 0 is late, so rank 0's reduce waits for its watermark.
HandMade kernel_2(std::int64_t watermark_end) {
  HandMade made(2);
  made.wiring().hit_row_block = {{0, 0}, {0, 0}};
  made.wiring().expert_of_row_block = {{0}, {0}};
  made.phase(0, Kind::gemm_combine_push, 0, 40);
  made.phase(0, Kind::final_reduce, 45, 120);
  made.phase(1, Kind::gemm_combine_push, 0, 95);
  const auto tiles = made.track(1, Stage::gemm_combine_push, Role::compute, 0);
  made.event(tiles, Kind::mainloop, 0, 25, {.row_block = 0, .index = 0});
  made.event(tiles, Kind::epilogue, 25, 30, {.row_block = 0, .index = 0});
  const auto jobs = made.track(1, Stage::gemm_combine_push, Role::communication, 1);
  made.event(jobs, Kind::claim, 2, 4, {.token = 0, .index = 0});
  made.event(jobs, Kind::ready_wait, 4, 33, {.token = 0, .row_block = 0, .index = 0});
  made.event(jobs, Kind::sum, 33, 50, {.token = 0, .index = 0});
  made.event(jobs, Kind::push, 50, 80, {.token = 0, .index = 0, .peer = 0});
  made.event(jobs, Kind::elect, 80, 82, {.token = 0, .index = 0, .peer = 0});
  made.event(jobs, Kind::watermark, 82, watermark_end, {.index = 0, .peer = 0});
  const auto reduce = made.track(0, Stage::final_reduce, Role::reduce, 0);
  made.event(reduce, Kind::reduce_wait, 45, 96, {.index = 0, .peer = 1});
  made.event(reduce, Kind::reduce, 96, 120, {.index = 0});
  return made;
}

TEST(CriticalPath, ReductionsLeadToTheSenderAndItsTiles) {
  const CriticalPath path = critical_path(kernel_2(95).build());
  EXPECT_EQ(stretches(path), (std::vector<Stretch>{
                                 {0, 30, Step::gemm_2},
                                 {30, 33, Step::combine_wait},
                                 {33, 82, Step::push_drain},  // the last tile ended at 30
                                 {82, 96, Step::watermark},
                                 {96, 120, Step::final_reduce},
                             }));
  // The sum is the layer's own arithmetic; push, election, watermark and final reduce are not.
  EXPECT_EQ(path.exposed_communication_ns(), (82 - 50) + (96 - 82) + (120 - 96));
  EXPECT_EQ(path.by_rank, (std::vector<std::int64_t>{25, 95}));
}

TEST(CriticalPath, ACauseBeyondItsEffectIsTakenToEndWithIt) {
  HandMade made = kernel_2(101);  // 5 ns after rank 0 saw it: their clocks disagree
  made.meta().clock_bound_ns = 10;
  EXPECT_EQ(stretches(critical_path(made.build())), (std::vector<Stretch>{
                                                        {0, 30, Step::gemm_2},
                                                        {30, 33, Step::combine_wait},
                                                        {33, 82, Step::push_drain},
                                                        {82, 96, Step::watermark},
                                                        {96, 120, Step::final_reduce},
                                                    }));
}

TEST(CriticalPath, JobsCountAsWorkUntilTheLastTileEnds) {
  HandMade made = kernel_2(95);
  const auto tiles = made.track(1, Stage::gemm_combine_push, Role::compute, 2);
  made.event(tiles, Kind::mainloop, 0, 55, {.row_block = 1, .index = 0});
  made.event(tiles, Kind::epilogue, 55, 60, {.row_block = 1, .index = 0});
  const CriticalPath path = critical_path(made.build());
  EXPECT_EQ(path.by_step[static_cast<std::size_t>(Step::combine_work)], 60 - 33);
  EXPECT_EQ(path.exposed_by_step[static_cast<std::size_t>(Step::combine_work)], 0);
  EXPECT_EQ(path.by_step[static_cast<std::size_t>(Step::push_drain)], 82 - 60);
}

TEST(CriticalPath, WithAllHandsTheLastTileIsWhatJobsTakenBeforeItsEndWaitedFor) {
  HandMade made(1, 3);
  made.wiring().hit_row_block = {{0, 0, 0}};
  made.wiring().expert_of_row_block = {{0}};
  made.phase(0, Kind::gemm_combine_push, 0, 150);
  const auto tiles = made.track(0, Stage::gemm_combine_push, Role::compute, 0);
  made.event(tiles, Kind::mainloop, 0, 60, {.row_block = 0, .index = 0});
  made.event(tiles, Kind::epilogue, 60, 70, {.row_block = 0, .index = 0});
  made.event(tiles, Kind::claim, 70, 72, {.token = 2, .index = 2});
  made.event(tiles, Kind::sum, 72, 80, {.token = 2, .index = 2});
  const auto jobs = made.track(0, Stage::gemm_combine_push, Role::communication, 1);
  const std::int64_t begins[] = {0, 50};
  for (int job = 0; job < 2; ++job) {  // no wait is on record: the rows were ready
    const std::int64_t begin = begins[job];
    made.event(jobs, Kind::claim, begin, begin + 2, {.token = job, .index = job});
    made.event(jobs, Kind::sum, begin + 2, begin + 10, {.token = job, .index = job});
    made.event(jobs, Kind::push, begin + 10, job == 0 ? 50 : 150,
               {.token = job, .index = job, .peer = 0});
  }
  const CriticalPath path = critical_path(made.build());
  EXPECT_EQ(stretches(path), (std::vector<Stretch>{
                                 {0, 50, Step::gemm_2},
                                 {50, 70, Step::combine_work},  // job 1, taken while the tile ran
                                 {70, 150, Step::push_drain},
                             }));
}

// The same of a block that stores a tile beside the next one's mainloop: on two lanes.
TEST(CriticalPath, TheMissingHandsMayBeInAMainloopOrInAnEpilogue) {
  struct Case {
    std::int64_t claimed_ns;
    std::int64_t first_epilogue_ns;  // its begin
    std::int64_t in_epilogues_ns;    // on the path
  };
  for (const Case& at : {Case{44, 40, 0},  // in both: in the one that began last
                         Case{55, 40, 0},  // the first tile's epilogue has ended
                         Case{55, 43, 0},  // the same, though it began after the mainloop beside it
                         Case{65, 40, 3}}) {  // in the last epilogue
    HandMade made(1, 2);
    made.wiring().hit_row_block = {{0, 1}};
    made.wiring().expert_of_row_block = {{0, 1}};
    made.phase(0, Kind::gemm_combine_push, 0, 150);
    const auto mainloops = made.track(0, Stage::gemm_combine_push, Role::compute, 0, 0);
    const auto epilogues = made.track(0, Stage::gemm_combine_push, Role::compute, 0, 1);
    const auto sums = made.track(0, Stage::gemm_combine_push, Role::compute, 0, 2);
    made.event(mainloops, Kind::mainloop, 0, 40, {.row_block = 0, .index = 0});
    made.event(mainloops, Kind::mainloop, 42, 62, {.row_block = 1, .index = 0});
    made.event(epilogues, Kind::epilogue, at.first_epilogue_ns, at.first_epilogue_ns + 6,
               {.row_block = 0, .index = 0});
    made.event(epilogues, Kind::epilogue, 62, 70, {.row_block = 1, .index = 0});
    made.event(sums, Kind::claim, 70, 72, {.token = 1, .index = 1});
    made.event(sums, Kind::sum, 72, 80, {.token = 1, .index = 1});
    const auto jobs = made.track(0, Stage::gemm_combine_push, Role::communication, 1);
    made.event(jobs, Kind::claim, at.claimed_ns, at.claimed_ns + 2, {.token = 0, .index = 0});
    made.event(jobs, Kind::sum, at.claimed_ns + 2, 100, {.token = 0, .index = 0});
    made.event(jobs, Kind::push, 100, 150, {.token = 0, .index = 0, .peer = 0});
    const CriticalPath path = critical_path(made.build());
    EXPECT_EQ(stretches(path), (std::vector<Stretch>{
                                   {0, at.claimed_ns, Step::gemm_2},
                                   {at.claimed_ns, 70, Step::combine_work},
                                   {70, 150, Step::push_drain},
                               }));
    EXPECT_EQ(path.by_kind[static_cast<std::size_t>(Kind::epilogue)], at.in_epilogues_ns);
  }
}

TEST(CriticalPath, AShortLivedBlockFollowsTheOneThatFreedItsSm) {
  HandMade made(1, 3);
  made.wiring().hit_row_block = {{0, 0, 0}};
  made.phase(0, Kind::gemm_combine_push, 0, 92);
  const std::int64_t begins[] = {5, 6, 40};
  const std::int64_t ends[] = {35, 38, 92};
  for (int job = 0; job < 3; ++job) {
    const auto block = made.track(0, Stage::gemm_combine_push, Role::communication, job);
    made.event(block, Kind::sum, begins[job], ends[job] - 10, {.token = job, .index = job});
    made.event(block, Kind::push, ends[job] - 10, ends[job],
               {.token = job, .index = job, .peer = 0});
  }
  const CriticalPath path = critical_path(made.build());
  ASSERT_EQ(path.by_token.size(), 2U);
  EXPECT_EQ(path.by_token[0].token, 2);
  EXPECT_EQ(path.by_token[1].token, 1);  // ended at 38; job 0 had freed its SM at 35 for nobody
  EXPECT_EQ(path.by_step[static_cast<std::size_t>(Step::launch_gap)], 6);
}

// Kernels that overlap, and more blocks of the final reduce than are resident: block 0 waits for its watermark,
// block 1 takes the SM that is left last before it begins, by kernel 2 or by block 0.
TEST(CriticalPath, WhereKernelsOverlapABlockFollowsTheLastToLeaveAnSm) {
  const auto path_where_kernel_2_ends = [](std::int64_t at) {
    HandMade made(2);
    made.meta().programmatic = true;
    made.phase(0, Kind::gemm_combine_push, 0, at);
    made.phase(0, Kind::final_reduce, at, 130);
    made.phase(1, Kind::gemm_combine_push, 0, 95);
    const auto tiles = made.track(0, Stage::gemm_combine_push, Role::compute, 0);
    made.event(tiles, Kind::mainloop, 0, at - 5, {.row_block = 0, .index = 0});
    made.event(tiles, Kind::epilogue, at - 5, at, {.row_block = 0, .index = 0});
    // No tile of rank 1 is on record: all of its jobs count as work.
    const auto jobs = made.track(1, Stage::gemm_combine_push, Role::communication, 0);
    made.event(jobs, Kind::push, 0, 82, {.token = 0, .index = 0, .peer = 0});
    made.event(jobs, Kind::watermark, 82, 95, {.index = 0, .peer = 0});
    const auto first = made.track(0, Stage::final_reduce, Role::reduce, 0);
    made.event(first, Kind::reduce_wait, 42, 96, {.index = 0, .peer = 1});
    made.event(first, Kind::reduce, 96, 120, {.index = 0});
    const auto second = made.track(0, Stage::final_reduce, Role::reduce, 1);
    made.event(second, Kind::reduce_wait, 123, 124, {.index = 0, .peer = 1});
    made.event(second, Kind::reduce, 124, 130, {.index = 0});
    return critical_path(made.build());
  };
  EXPECT_EQ(stretches(path_where_kernel_2_ends(40)), (std::vector<Stretch>{
                                                         {0, 82, Step::combine_work},
                                                         {82, 96, Step::watermark},
                                                         {96, 123, Step::final_reduce},
                                                         {123, 124, Step::watermark},
                                                         {124, 130, Step::final_reduce},
                                                     }));
  EXPECT_EQ(stretches(path_where_kernel_2_ends(122)), (std::vector<Stretch>{
                                                          {0, 122, Step::gemm_2},
                                                          {122, 123, Step::launch_gap},
                                                          {123, 124, Step::watermark},
                                                          {124, 130, Step::final_reduce},
                                                      }));
}

// A warpgroup runs four jobs with two row buffers. Its pusher issues each push 20 ns late, and completes and
// counts the push before only after that; a sum waits for the push two jobs before.
TEST(CriticalPath, AWarpgroupsSumsWaitForItsPushes) {
  HandMade made(1, 4);
  made.wiring().hit_row_block = {{0, 0, 0, 0}};
  made.wiring().expert_of_row_block = {{0}};
  made.phase(0, Kind::gemm_combine_push, 0, 166);
  const auto tiles = made.track(0, Stage::gemm_combine_push, Role::compute, 0);
  made.event(tiles, Kind::mainloop, 0, 5, {.row_block = 0, .index = 0});
  made.event(tiles, Kind::epilogue, 5, 10, {.row_block = 0, .index = 0});
  const auto front = made.track(0, Stage::gemm_combine_push, Role::communication, 1, 2);
  const std::uint32_t pushes[] = {
      made.track(0, Stage::gemm_combine_push, Role::communication, 1, 3),
      made.track(0, Stage::gemm_combine_push, Role::communication, 1, 4)};
  const std::int64_t claimed[] = {10, 14, 46,
                                  84};  // job 1 while job 0 waits to be summed, and so on
  const std::int64_t ready[] = {12, 26, 58, 96};
  const std::int64_t summed[] = {26, 58, 96, 134};  // begun 10 before
  const std::int64_t pushed[] = {80, 118, 156, 162};
  for (int job = 0; job < 4; ++job) {
    const HandMade::Args args{.token = job, .index = job};
    const HandMade::Args to{.token = job, .index = job, .peer = 0};
    made.event(front, Kind::claim, claimed[job], claimed[job] + 2, args);
    made.event(front, Kind::ready_wait, ready[job], ready[job] + 2,
               {.token = job, .row_block = 0, .index = job});
    made.event(front, Kind::sum, summed[job] - 10, summed[job], args);
    made.event(pushes[job % 2], Kind::push, summed[job], pushed[job], to);
    made.event(pushes[job % 2], Kind::elect, pushed[job], pushed[job] + 4, to);
  }
  const timeline::Timeline timeline = made.build();
  const CriticalPath path = critical_path(timeline);
  EXPECT_EQ(stretches(path), (std::vector<Stretch>{
                                 {0, 10, Step::gemm_2},
                                 {10, 12, Step::push_drain},
                                 {12, 14, Step::combine_wait},
                                 {14, 26, Step::push_drain},
                                 {26, 28, Step::combine_wait},
                                 {28, 166, Step::push_drain},
                             }));
  // Each push holds the path from its issue until the one before it is complete; the first until the
  // second sum may begin, the last until it is complete itself.
  EXPECT_EQ(path.by_kind[static_cast<std::size_t>(Kind::push)],
            (46 - 28) + (80 - 58) + (118 - 96) + (162 - 134));
  EXPECT_EQ(path.by_kind[static_cast<std::size_t>(Kind::elect)], 3 * 4);  // push 2's is hidden
  EXPECT_EQ(path.by_kind[static_cast<std::size_t>(Kind::sum)], 4 * 10);
  EXPECT_EQ(path.exposed_communication_ns(), 90 + 12);

  // Jobs 2 and 3 were ready 24 ns before their buffers were free: 20 in flight, 4 to be counted.
  const WaitTable waits = tabulate_waits(timeline::Dependencies(timeline), {});
  const auto buffers = std::find_if(waits.edges.begin(), waits.edges.end(),
                                    [](const WaitEdge& edge) { return edge.kind == Kind::push; });
  ASSERT_NE(buffers, waits.edges.end());
  EXPECT_EQ(buffers->waits, 2);
  EXPECT_EQ(buffers->ns_by_blame, (std::array<std::int64_t, kBlames>{0, 40, 8}));
  EXPECT_EQ(buffers->source_rank, 0);
}

// The same where sums have a lane of their own: a sum waits until the copy engine has read its buffer, 20 ns
// after the push two jobs before was issued late; the pusher takes one push after the other.
TEST(CriticalPath, SumsOfTheirOwnLaneWaitForTheirBuffer) {
  HandMade made(1, 4);
  made.wiring().hit_row_block = {{0, 0, 0, 0}};
  made.wiring().expert_of_row_block = {{0}};
  constexpr std::int64_t k = 100;  // all times in tenths of a microsecond
  made.phase(0, Kind::gemm_combine_push, 0, 118 * k);
  const auto tiles = made.track(0, Stage::gemm_combine_push, Role::compute, 0);
  made.event(tiles, Kind::mainloop, 0, 5 * k, {.row_block = 0, .index = 0});
  made.event(tiles, Kind::epilogue, 5 * k, 10 * k, {.row_block = 0, .index = 0});
  const auto front = made.track(0, Stage::gemm_combine_push, Role::communication, 1, 2);
  const auto sums = made.track(0, Stage::gemm_combine_push, Role::communication, 1, 3);
  const std::uint32_t pushes[] = {
      made.track(0, Stage::gemm_combine_push, Role::communication, 1, 4),
      made.track(0, Stage::gemm_combine_push, Role::communication, 1, 5)};
  const std::int64_t begun[] = {14, 20, 40, 66};  // jobs 2 and 3 when their buffers were free
  const std::int64_t issued[] = {20, 46, 72, 98};
  const std::int64_t pushed[] = {66, 92, 110, 114};
  for (int job = 0; job < 4; ++job) {
    const HandMade::Args args{.token = job, .index = job};
    const HandMade::Args to{.token = job, .index = job, .peer = 0};
    made.event(front, Kind::claim, (10 + job) * k, (11 + job) * k, args);
    made.event(sums, Kind::sum, begun[job] * k, (begun[job] + 6) * k, args);
    made.event(pushes[job % 2], Kind::push, issued[job] * k, pushed[job] * k, to);
    made.event(pushes[job % 2], Kind::elect, pushed[job] * k, (pushed[job] + 4) * k, to);
  }
  const CriticalPath path = critical_path(made.build());
  // From the end: push 3 alone; push 1 while push 2 is issued; push 0 while push 1 is; and push 0 until push 1
  // could be issued.
  EXPECT_EQ(path.by_kind[static_cast<std::size_t>(Kind::push)],
            ((114 - 98) + (92 - 72) + (66 - 46) + (46 - 20)) * k);
  EXPECT_EQ(path.by_kind[static_cast<std::size_t>(Kind::elect)], 3 * 4 * k);
  EXPECT_EQ(path.unexplained_ns, 0);

  const timeline::Timeline timeline = made.build();
  const WaitTable waits = tabulate_waits(timeline::Dependencies(timeline), {});
  const auto buffers = std::find_if(waits.edges.begin(), waits.edges.end(),
                                    [](const WaitEdge& edge) { return edge.kind == Kind::push; });
  ASSERT_NE(buffers, waits.edges.end());
  EXPECT_EQ(buffers->waits, 2);
  EXPECT_EQ(buffers->wait_ns, ((40 - 26) + (66 - 46)) * k);
}

TEST(CriticalPath, TheSerialLayerIsItsPhases) {
  HandMade made(2);
  made.meta().serial = true;
  for (int rank = 0; rank < 2; ++rank) {
    const std::int64_t late = 7 * rank;
    made.phase(rank, Kind::ids_exchange, 0, 20);
    made.phase(rank, Kind::all_gather, 20 + late, 60);
    made.phase(rank, Kind::scatter_rows, 60, 80);
    made.phase(rank, Kind::gemm_1, 80, 180);
    made.phase(rank, Kind::activation, 180, 190);
    made.phase(rank, Kind::gemm_2, 190, 250 + late);
    made.phase(rank, Kind::combine, 250 + late, 280 + late);
    made.phase(rank, Kind::reduce_scatter, 280 + late, 330);
  }
  const CriticalPath path = critical_path(made.build());
  EXPECT_EQ(stretches(path), (std::vector<Stretch>{
                                 {0, 20, Step::ids_exchange},
                                 {20, 27, Step::launch_gap},
                                 {27, 60, Step::all_gather},
                                 {60, 80, Step::scatter_rows},
                                 {80, 180, Step::gemm_1},
                                 {180, 190, Step::activation},
                                 {190, 257, Step::gemm_2},
                                 {257, 287, Step::combine},
                                 {287, 330, Step::reduce_scatter},
                             }));
  EXPECT_EQ(path.exposed_communication_ns(), 20 + 33 + 20 + 43);
}

TEST(CriticalPath, AWaitWithoutACauseOnRecordIsSaid) {
  HandMade made = kernel_1();
  const auto compute = made.track(0, Stage::dispatch_gemm, Role::compute, 0);
  tile(made, compute, 0, 100, 200, 300);
  const CriticalPath path = critical_path(made.build());
  EXPECT_EQ(path.causes_missing, 1);
  EXPECT_EQ(path.by_step[static_cast<std::size_t>(Step::dispatch_head)], 100);
}

}  // namespace
}  // namespace fusescope::analysis
