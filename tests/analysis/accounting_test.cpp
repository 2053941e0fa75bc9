#include "analysis/accounting.hpp"

#include <gtest/gtest.h>

#include "analysis/wait_table.hpp"
#include "hand_made.hpp"

namespace fusescope::analysis {
namespace {

using timeline::Kind;
using timeline::Role;
using timeline::Stage;

std::int64_t of(const std::array<std::int64_t, kUses>& by_use, Use use) {
  return by_use[static_cast<std::size_t>(use)];
}

// One rank of three SMs: 10 ns of ids exchange, 5 ns of gap, 100 ns of kernel 1 with a compute block and a
// communication block of two lanes; the third SM has no block.
HandMade three_sms() {
  HandMade made(1, 3, 1);
  made.meta().sms = 3;
  made.wiring().hit_row_block = {{0, 0, 0}};
  made.wiring().expert_of_row_block = {{4}};
  made.phase(0, Kind::ids_exchange, 0, 10);
  made.phase(0, Kind::dispatch_gemm, 15, 115);
  const auto compute = made.track(0, Stage::dispatch_gemm, Role::compute, 0);
  made.event(compute, Kind::gate_wait, 15, 70, {.row_block = 0, .index = 0});
  made.event(compute, Kind::mainloop, 70, 100, {.row_block = 0, .index = 0});
  made.event(compute, Kind::epilogue, 102, 115, {.row_block = 0, .index = 0});
  const auto lane_0 = made.track(0, Stage::dispatch_gemm, Role::communication, 1, 0);
  const auto lane_1 = made.track(0, Stage::dispatch_gemm, Role::communication, 1, 1);
  made.event(lane_0, Kind::pull, 15, 40, {.token = 0, .peer = 0});
  made.event(lane_0, Kind::scatter, 40, 45, {.token = 0});
  made.event(lane_0, Kind::arrive, 45, 46, {.token = 0});
  made.event(lane_1, Kind::pull, 20, 55, {.token = 1, .peer = 0});
  made.event(lane_1, Kind::scatter, 55, 60, {.token = 1});
  made.event(lane_1, Kind::arrive, 60, 66, {.token = 1});
  return made;
}

TEST(Accounting, AreaIsSplitByWhatEachSmDoes) {
  const Accounting accounting = account(three_sms().build());
  ASSERT_EQ(accounting.ranks.size(), 1U);
  const RankAccounting& rank = accounting.ranks[0];
  EXPECT_EQ(rank.area_ns, 3 * 115);
  EXPECT_EQ(of(rank.by_use, Use::other_phase), 3 * 10);
  EXPECT_EQ(of(rank.by_use, Use::gate_wait), 55);
  EXPECT_EQ(of(rank.by_use, Use::compute), 30 + 13);
  EXPECT_EQ(of(rank.by_use, Use::communication), 66 - 15);  // the lanes overlap
  // The gap, the SM without a block, 2 ns between two slices, the communication block's end.
  EXPECT_EQ(of(rank.by_use, Use::idle), 3 * 5 + 100 + 2 + (115 - 66));
  const auto& compute = rank.by_role[static_cast<std::size_t>(Role::compute)];
  EXPECT_EQ(of(compute, Use::idle), 2);
  EXPECT_EQ(of(compute, Use::gate_wait), 55);
}

TEST(Accounting, WorkOnOneLaneHidesWaitingOnAnother) {
  HandMade made(1);
  made.meta().sms = 1;
  made.wiring().hit_row_block = {{0}};
  made.phase(0, Kind::gemm_combine_push, 0, 100);
  const auto lane_0 = made.track(0, Stage::gemm_combine_push, Role::communication, 0, 0);
  const auto lane_1 = made.track(0, Stage::gemm_combine_push, Role::communication, 0, 1);
  made.event(lane_0, Kind::ready_wait, 0, 80, {.token = 0, .row_block = 0, .index = 0});
  made.event(lane_1, Kind::sum, 30, 50, {.token = 0, .index = 0});
  const Accounting accounting = account(made.build());
  EXPECT_EQ(of(accounting.ranks[0].by_use, Use::ready_wait), 60);
  EXPECT_EQ(of(accounting.ranks[0].by_use, Use::combine), 20);
  EXPECT_EQ(of(accounting.ranks[0].by_use, Use::idle), 20);
}

TEST(Accounting, RolesMayCountTheirBlocksFromZeroEach) {
  HandMade made(1);
  made.meta().sms = 2;
  made.wiring().hit_row_block = {{0}};
  made.phase(0, Kind::gemm_combine_push, 0, 100);
  const auto compute = made.track(0, Stage::gemm_combine_push, Role::compute, 0);
  const auto jobs = made.track(0, Stage::gemm_combine_push, Role::communication, 0);
  made.event(compute, Kind::mainloop, 0, 100, {.row_block = 0, .index = 0});
  made.event(jobs, Kind::sum, 10, 90, {.token = 0, .index = 0});
  const Accounting accounting = account(made.build());
  EXPECT_EQ(of(accounting.ranks[0].by_use, Use::compute), 100);
  EXPECT_EQ(of(accounting.ranks[0].by_use, Use::combine), 80);
  EXPECT_EQ(of(accounting.ranks[0].by_use, Use::idle), 20);
}

TEST(Accounting, ShortLivedBlocksShareTheSmsThereAre) {
  HandMade made(1, 6);
  made.meta().sms = 2;
  made.wiring().hit_row_block = {{0, 0, 0, 0, 0, 0}};
  made.phase(0, Kind::gemm_combine_push, 0, 100);
  for (int job = 0; job < 6; ++job) {  // two at a time
    const auto block = made.track(0, Stage::gemm_combine_push, Role::communication, job);
    const std::int64_t begin = 30 * (job / 2);
    made.event(block, Kind::sum, begin, begin + 25, {.token = job, .index = job});
  }
  const Accounting accounting = account(made.build());
  EXPECT_EQ(of(accounting.ranks[0].by_use, Use::combine), 6 * 25);
  EXPECT_EQ(of(accounting.ranks[0].by_use, Use::idle), 200 - 6 * 25);
}

TEST(Accounting, BlocksBeyondTheSmCountDoNotAddArea) {
  HandMade made(1, 3);
  made.meta().sms = 1;
  made.wiring().hit_row_block = {{0, 0, 0}};
  made.phase(0, Kind::gemm_combine_push, 0, 50);
  for (int job = 0; job < 3; ++job) {
    const auto block = made.track(0, Stage::gemm_combine_push, Role::communication, job);
    made.event(block, Kind::sum, 0, 40, {.token = job, .index = job});
  }
  const Accounting accounting = account(made.build());
  EXPECT_EQ(of(accounting.ranks[0].by_use, Use::combine), 40);
  EXPECT_EQ(accounting.ranks[0].area_ns, 50);
}

TEST(GateBlame, SplitsTheWaitByWhatTheLastTokenDid) {
  const Accounting accounting = account(three_sms().build());
  ASSERT_EQ(accounting.gates.size(), 1U);
  const GateBlame& gate = accounting.gates[0];
  EXPECT_EQ(gate.last_token, 1);
  EXPECT_EQ(gate.source_rank, 0);
  EXPECT_EQ(gate.expert, 4);
  EXPECT_EQ(gate.blame, Blame::not_yet_issued);
  EXPECT_EQ(gate.wait_ns, 55);
  EXPECT_EQ(gate.ns_by_blame, (std::array<std::int64_t, kBlames>{5, 46, 4}));
  EXPECT_EQ(gate.pull_ns, 35);
  EXPECT_EQ(gate.scatter_ns, 11);
}

// Token 1 alone fills row block 1, and the tile of row block 0 takes that with it.
TEST(GateBlame, OfATileOfTwoRowBlocksIsTheOneThatOpensLast) {
  HandMade made = three_sms();
  made.wiring().hit_row_block = {{0, 1, 0}};
  made.wiring().expert_of_row_block = {{4, 4}};
  made.wiring().tile_of_row_block = {{0, 0}};
  const Accounting together = account(made.build());
  ASSERT_EQ(together.gates.size(), 1U);
  EXPECT_EQ(together.gates[0].row_block, 1);
  EXPECT_EQ(together.gates[0].expert, 4);
  EXPECT_EQ(together.gates[0].last_token, 1);
  EXPECT_EQ(together.gates[0].ns_by_blame, (std::array<std::int64_t, kBlames>{5, 46, 4}));

  made = three_sms();
  made.wiring().hit_row_block = {{0, 1, 0}};
  made.wiring().expert_of_row_block = {{4, 4}};
  const Accounting apart = account(made.build());
  ASSERT_EQ(apart.gates.size(), 1U);
  EXPECT_EQ(apart.gates[0].row_block, 0);
  EXPECT_EQ(apart.gates[0].last_token, 0);
}

TEST(GateBlame, AGateWithoutAnArrivalOnRecordNamesNobody) {
  HandMade made(1);
  made.wiring().hit_row_block = {{0}};
  made.phase(0, Kind::dispatch_gemm, 0, 50);
  const auto compute = made.track(0, Stage::dispatch_gemm, Role::compute, 0);
  made.event(compute, Kind::gate_wait, 0, 30, {.row_block = 0, .index = 0});
  const Accounting accounting = account(made.build());
  ASSERT_EQ(accounting.gates.size(), 1U);
  EXPECT_EQ(accounting.gates[0].last_token, -1);
  EXPECT_EQ(accounting.gates[0].source_rank, -1);
  EXPECT_EQ(accounting.gates[0].ns_by_blame, (std::array<std::int64_t, kBlames>{30, 0, 0}));
}

TEST(WaitTable, SaysWhoWaitsForWhom) {
  HandMade made(2);
  made.wiring().hit_row_block = {{0, 0}, {0, 0}};
  made.phase(0, Kind::barrier, 0, 30, 0);
  made.phase(1, Kind::barrier, 20, 32, 0);
  made.phase(1, Kind::gemm_combine_push, 40, 80);
  const auto jobs = made.track(1, Stage::gemm_combine_push, Role::communication, 0);
  made.event(jobs, Kind::watermark, 60, 70, {.index = 0, .peer = 0});
  made.phase(0, Kind::final_reduce, 50, 90);
  const auto reduce = made.track(0, Stage::final_reduce, Role::reduce, 0);
  made.event(reduce, Kind::reduce_wait, 50, 74, {.index = 0, .peer = 1});
  const timeline::Timeline timeline = made.build();
  const timeline::Dependencies dependencies(timeline);
  const WaitTable table = tabulate_waits(dependencies, blame_gates(dependencies));

  ASSERT_EQ(table.edges.size(), 3U);
  const WaitEdge& barrier = table.edges[0];
  EXPECT_EQ(barrier.kind, Kind::barrier);
  EXPECT_EQ(barrier.waiting_rank, 0);
  EXPECT_EQ(barrier.source_rank, 1);
  EXPECT_EQ(barrier.ns_by_blame, (std::array<std::int64_t, kBlames>{20, 0, 10}));
  const WaitEdge& watermark = table.edges[1];
  EXPECT_EQ(watermark.kind, Kind::reduce_wait);
  EXPECT_EQ(watermark.role, Role::reduce);
  EXPECT_EQ(watermark.source_rank, 1);
  EXPECT_EQ(watermark.ns_by_blame, (std::array<std::int64_t, kBlames>{10, 10, 4}));
  // The last to enter waits for nobody.
  EXPECT_EQ(table.edges[2].waiting_rank, 1);
  EXPECT_EQ(table.edges[2].source_rank, 1);
  EXPECT_EQ(table.edges[2].ns_by_blame, (std::array<std::int64_t, kBlames>{0, 0, 12}));
}

}  // namespace
}  // namespace fusescope::analysis
