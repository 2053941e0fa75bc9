// Scenarios: drawn ones are legal and different, their text reads back, and bad text is refused by name.
#include <gtest/gtest.h>

#include <array>
#include <set>

#include "base/error.hpp"
#include "layer/row_tiles.hpp"
#include "layer/tables.hpp"
#include "protocol/layer/gemm_schedule.hpp"
#include "protocol/schedule.hpp"

namespace fusescope::protocol {
namespace {

TEST(Scenario, DrawnOnesAreLegalAndCoverTheKnobs) {
  std::set<std::string> seen;
  std::set<int> ranks, row_blocks;
  std::set<Combine> combines;
  std::set<Fault> faults;
  std::set<bool> fetches_first, all_hands, shares_gpu;
  std::array<int, 5> overlapping{}, gathering{}, both{}, beside_tiles{}, gathering_by_steps{},
      pulling_with_prologue{}, pushing{}, pushing_again{}, pushing_overlapping{};  // by ranks
  std::set<int> heads;
  for (std::uint64_t i = 0; i < 2000; ++i) {
    const Scenario s = draw_scenario(Subject::layer, {}, 1, i);
    ASSERT_EQ(why_illegal(s), "") << to_string(s);
    seen.insert(to_string(s));
    ranks.insert(s.ranks);
    row_blocks.insert(s.row_block);
    combines.insert(s.config.combine);
    faults.insert(s.fault);
    fetches_first.insert(s.config.dispatch_comm_sms == 0);
    all_hands.insert(s.config.all_hands);
    shares_gpu.insert(s.devices < s.ranks);
    const bool is_overlapping = s.config.launch == LaunchOrder::programmatic;
    const bool is_gathering = s.config.dispatch != Dispatch::scatter;
    const bool is_pushing = s.config.dispatch == Dispatch::push;
    overlapping[s.ranks] += is_overlapping ? 1 : 0;
    gathering[s.ranks] += is_gathering ? 1 : 0;
    gathering_by_steps[s.ranks] += is_gathering && s.grouping().merges() ? 1 : 0;
    both[s.ranks] += is_overlapping && is_gathering ? 1 : 0;
    beside_tiles[s.ranks] += s.fetches_beside_tiles() ? 1 : 0;
    heads.insert(s.config.dispatch_head);
    const bool with_prologue = s.config.schedule == ScheduleSite::fused;
    pulling_with_prologue[s.ranks] += is_gathering && !is_pushing && with_prologue ? 1 : 0;
    pushing[s.ranks] += is_pushing ? 1 : 0;
    pushing_again[s.ranks] += is_pushing && s.iterations > 1 ? 1 : 0;
    pushing_overlapping[s.ranks] += is_pushing && is_overlapping ? 1 : 0;
  }
  EXPECT_GT(seen.size(), 1990u);
  EXPECT_EQ(ranks, (std::set<int>{1, 2, 3, 4}));
  EXPECT_EQ(row_blocks, (std::set<int>{2, 4, 6}));
  EXPECT_EQ(combines.size(), 2u);
  EXPECT_EQ(faults.size(), 14u);
  EXPECT_EQ(fetches_first.size() + all_hands.size() + shares_gpu.size(), 6u);
  EXPECT_EQ(heads, (std::set<int>{0, 30, 60, 100}));
  for (int r = 1; r <= 4; ++r) {
    EXPECT_GT(overlapping[r], 100) << r;
    EXPECT_GT(gathering[r], 100) << r;
    EXPECT_GT(both[r], 30) << r;
    EXPECT_GT(beside_tiles[r], 50) << r;
    EXPECT_GT(gathering_by_steps[r], 15) << r;
    EXPECT_GT(pulling_with_prologue[r], 30) << r;
  }
  EXPECT_EQ(pushing[1], 0);
  for (int r = 2; r <= 4; ++r) {
    EXPECT_GT(pushing[r], 20) << r;
    EXPECT_GT(pushing_again[r], 10) << r;
    EXPECT_GT(pushing_overlapping[r], 2) << r;
  }
}

// The model's row blocks are small; with the kernels', its tiles are the layer's.
TEST(Scenario, RowTilesAreTheLayers) {
  for (const TileShape tile : {TileShape::m128n256, TileShape::m160n256, TileShape::m288n128}) {
    Scenario s;
    s.row_block = kRowBlock;
    s.config.tile = tile;
    int merged = 0;
    for (int rows = 1; rows < 6 * kRowBlock; rows += 7) {
      const int last = (rows + kRowBlock - 1) / kRowBlock;
      ScheduleTables tables;
      tables.expert_rows = {0, 0, last * kRowBlock, (last + 2) * kRowBlock};
      tables.slack.assign(last + 2, 0);
      tables.slack[last - 1] = last * kRowBlock - rows;
      const auto wanted = row_tiles(tables, s.grouping());
      EXPECT_EQ(row_tiles(s, tables), static_cast<int>(wanted.size())) << rows;
      merged += static_cast<int>(wanted.size()) < tables.row_blocks() ? 1 : 0;
    }
    EXPECT_EQ(merged > 0, s.grouping().merges());
  }
}

TEST(Scenario, LimitsHold) {
  const Limits limits{
      .ranks = 2, .tokens = 3, .tokens_per_rank = 2, .experts = 3, .topk = 1, .iterations = 1};
  for (std::uint64_t i = 0; i < 300; ++i) {
    const Scenario s = draw_scenario(Subject::layer, limits, 1, i);
    EXPECT_LE(s.ranks, 2);
    EXPECT_LE(s.tokens(), 3);
    EXPECT_LE(s.tokens_per_rank, 2);
    EXPECT_LE(s.experts, 3);
    EXPECT_EQ(s.topk, 1);
    EXPECT_EQ(s.iterations, 1);
  }
}

TEST(Scenario, ScheduleTextReadsBack) {
  for (std::uint64_t i = 0; i < 300; ++i) {
    const Subject subject = i % 2 == 0 ? Subject::layer : Subject::gemm_reduce_scatter;
    Schedule schedule{draw_scenario(subject, {}, 2, i), Bug::two_elected, {}};
    schedule.choices = {0, 0, 0, static_cast<std::uint16_t>(i), 7, 7, 0};
    const Schedule read = parse_schedule(to_string(schedule), "--replay");
    EXPECT_EQ(read.scenario, schedule.scenario) << to_string(schedule);
    EXPECT_EQ(read.choices, schedule.choices);
    EXPECT_EQ(read.bug, schedule.bug);
  }
}

TEST(Scenario, BadTextIsRefused) {
  const auto said = [](const std::string& text) -> std::string {
    try {
      parse_schedule(text, "--replay");
      return "";
    } catch (const InputError& error) {
      return error.what();
    }
  };
  EXPECT_NE(said("ranks=9").find("ranks"), std::string::npos);
  EXPECT_NE(said("ranks=x").find("\"x\""), std::string::npos);
  EXPECT_NE(said("rank=1").find("rank"), std::string::npos);
  EXPECT_NE(said("ranks=1 bug=two_electd").find("two_elected"), std::string::npos);
  EXPECT_NE(said("ranks=1 choices=1,a").find("\"a\""), std::string::npos);
  EXPECT_NE(said("ranks=1 choices=0*99999999999").find("choice"), std::string::npos);
  EXPECT_NE(said("ranks=1 fault=fire").find("dead_rank"), std::string::npos);
  EXPECT_NE(said("ranks=1 topk=3 experts=2").find("topk"), std::string::npos);
  EXPECT_NE(said("ranks=1 row_block=3").find("odd"), std::string::npos);
  EXPECT_NE(said("ranks=1 dispatch_comm_sms=7").find("dispatch_comm_sms"), std::string::npos);
  EXPECT_NE(said("ranks=1 form=serial").find("fused"), std::string::npos);
}

}  // namespace
}  // namespace fusescope::protocol
