// What compute-sanitizer is run on: every kernel of the layer once or twice, on a shape so small that
// the slowest of its tools is done in a minute. Right outputs are checked here too.
#include <set>

#include "engine/cuda/cuda_test_support.hpp"

namespace fusescope::engine::cuda::test {
namespace {

struct Form {
  const char* name;
  Config config;
};

std::vector<Form> forms() {
  Config split;
  Config fetch_first;
  fetch_first.dispatch_comm_sms = 0;
  fetch_first.watermark_chunks = 3;
  fetch_first.slot_order = SlotOrder::rotate_from_self;
  Config per_job;
  per_job.combine = Combine::block_per_job;
  per_job.all_hands = false;
  per_job.graph = false;
  Config fused_activation;
  fused_activation.activation = Activation::fused;
  fused_activation.tile = TileShape::m128n128;
  fused_activation.all_hands = false;
  fused_activation.schedule = ScheduleSite::host;
  Config programmatic;
  programmatic.activation = Activation::fused;
  programmatic.dispatch_comm_sms = 0;
  programmatic.tile_counter = TileCounter::both;
  programmatic.schedule = ScheduleSite::fused;
  programmatic.launch = LaunchOrder::programmatic;
  Config capped;
  capped.link_gbps = 5;
  capped.schedule = ScheduleSite::device;
  Config gather = fetch_first;
  gather.dispatch = Dispatch::gather;
  gather.schedule = ScheduleSite::fused;
  Config gather_split;
  gather_split.dispatch = Dispatch::gather;
  gather_split.tile = TileShape::m128n128;
  gather_split.activation = Activation::fused;
  Config row_steps;
  row_steps.tile = TileShape::m160n256;
  row_steps.activation = Activation::fused;
  row_steps.launch = LaunchOrder::programmatic;
  Config two_row_blocks;
  two_row_blocks.tile = TileShape::m288n128;
  two_row_blocks.activation = Activation::fused;
  two_row_blocks.tile_counter = TileCounter::both;
  Config gather_row_steps = row_steps;
  gather_row_steps.dispatch = Dispatch::gather;
  gather_row_steps.dispatch_comm_sms = 0;
  Config push = gather_row_steps;
  push.dispatch = Dispatch::push;
  push.schedule = ScheduleSite::fused;
  Config beside_tiles = row_steps;
  beside_tiles.dispatch_comm_sms = 0;
  beside_tiles.dispatch_head = 30;
  beside_tiles.schedule = ScheduleSite::fused;
  Config serial;
  serial.form = LayerForm::serial;
  return {{"split", split},
          {"fetch_first", fetch_first},
          {"per_job", per_job},
          {"fused_activation", fused_activation},
          {"capped", capped},
          {"programmatic", programmatic},
          {"gather", gather},
          {"gather_split", gather_split},
          {"row_steps", row_steps},
          {"gather_row_steps", gather_row_steps},
          {"push", push},
          {"two_row_blocks", two_row_blocks},
          {"beside_tiles", beside_tiles},
          {"serial", serial}};
}

enum class Memory { poisoned, as_it_comes };

// initcheck does not see what bulk copies write, and would call every later read of it uninitialised.
// What only ordinary stores and API copies write stays as it comes.
void poison_what_bulk_copies_write(const LayerMemory& memory) {
  for (int r = 0; r < memory.ranks(); ++r) {
    const RankMemory& m = memory.rank(r);
    const std::set<const void*> written = {m.args.gate_up, m.args.act, m.args.partial,
                                           m.args.all_tokens, m.args.shared[r].staging};
    const kernels::OnDevice on(m.device);
    for (const auto& array : m.arrays) {
      if (written.count(array.block.get()) > 0) {
        FUSESCOPE_CUDA(cudaMemset(array.block.get(), 0xFF, array.bytes));
      }
    }
    FUSESCOPE_CUDA(cudaDeviceSynchronize());
  }
}

// Tiles by row steps have experts of several row blocks, the last of which goes with the tile before it: one
// expert has all 258 tokens, and one of the others 129 to 160 of them.
Problem problem_of(int ranks, const Config& config) {
  return is_by_row_steps(config.tile)
             ? make_test_problem(make_shape(ranks, 258 / ranks, 512, 3, 2, 64), "hot", 5)
             : make_test_problem(make_shape(ranks, 33, 512, 4, 2, 64), "zipf", 5);
}

void run(int ranks, const std::vector<Device>& devices, const Config& wanted, Memory memory) {
  Config config = as_built(wanted, devices);
  // One slot a warp, in blocks of either GEMM: where several lanes of a warp initialise a barrier each, by an
  // instruction that takes one address for all of them, racecheck holds each to have written all.
  config.tokens_per_block = 8;
  const Problem problem = problem_of(ranks, config);
  LayerRunner runner(problem, devices, {.seed = 9, .deadline_ns = kTestDeadlineNs});
  runner.configure(config);
  if (memory == Memory::poisoned) {
    runner.memory().poison();
  } else {
    poison_what_bulk_copies_write(runner.memory());
  }
  runner.run_once();
  ASSERT_EQ(what_is_wrong(runner), "");
  runner.run_once();  // on what the first one left
  EXPECT_EQ(what_is_wrong(runner), "");
}

// Needs no GPU.
TEST(SanitizedShape, TilesByRowStepsTakeTheLastRowBlockAlong) {
  for (const TileShape tile : kTilesByRowSteps) {
    Config config;
    config.tile = tile;
    const RowGrouping grouping = row_grouping(tile);
    for (const int ranks : {1, 2}) {
      const Problem problem = problem_of(ranks, config);
      const ScheduleTables tables =
          build_tables_golden(problem.shape, problem.routing, SlotOrder::by_token, 0);
      const std::vector<RowTile> tiles = row_tiles(tables, grouping);
      EXPECT_TRUE(
          std::any_of(tiles.begin(), tiles.end(),
                      [&](const RowTile& each) { return each.blocks == grouping.blocks + 1; }))
          << tile_text(tile) << ", ranks: " << ranks;
    }
  }
}

class Sanitized : public testing::TestWithParam<Form> {};

TEST_P(Sanitized, OneRank) {
  FUSESCOPE_NEED_DEVICES(devices, 1);
  if (GetParam().config.dispatch == Dispatch::push) {
    GTEST_SKIP() << "one rank has nobody to push tokens to";
  }
  run(1, devices, GetParam().config, Memory::poisoned);
}

TEST_P(Sanitized, TwoRanksOnOneDevice) {
  FUSESCOPE_NEED_DEVICES(devices, 1);
  run(2, devices, GetParam().config, Memory::poisoned);
}

TEST_P(Sanitized, TwoDevices) {
  FUSESCOPE_NEED_DEVICES(devices, 2);
  run(2, devices, GetParam().config, Memory::poisoned);
}

// For initcheck: poison counts as initialised.
TEST_P(Sanitized, FreshMemory) {
  FUSESCOPE_NEED_DEVICES(devices, 1);
  run(2, devices, GetParam().config, Memory::as_it_comes);
}

INSTANTIATE_TEST_SUITE_P(Forms, Sanitized, testing::ValuesIn(forms()),
                         [](const auto& tested) { return std::string(tested.param.name); });

}  // namespace
}  // namespace fusescope::engine::cuda::test
