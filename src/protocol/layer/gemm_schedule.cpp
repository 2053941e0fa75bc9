#include "protocol/layer/gemm_schedule.hpp"

#include <algorithm>
#include <limits>

#include "protocol/layer/gemm_tile.hpp"

namespace fusescope::protocol {
namespace {

// The slack from which on a row block's second half is left out.
int empty_half(const GemmCall& call) {
  if (!call.halves) {
    return std::numeric_limits<int>::max();
  }
  const bool early = call.layer.has(Bug::half_left_out_early);
  return half_rows(call.layer.s) - (early ? 1 : 0);
}

// Row blocks [first, last) of an expert, and the tiles that they are multiplied in.
struct ExpertBlocks {
  int first, last;
  int row_tiles;

  ExpertBlocks(const Scenario& s, const ScheduleTables& tables, int expert)
      : first(tables.expert_rows[expert] / s.row_block),
        last(tables.expert_rows[expert + 1] / s.row_block) {
    const RowGrouping grouping = s.grouping();
    const int blocks = last - first;
    const bool absorbs = blocks > 1 && (blocks - 1) % grouping.blocks == 0 &&
                         s.row_block - tables.slack[last - 1] <= grouping.absorbed;
    row_tiles = (blocks + grouping.blocks - 1) / grouping.blocks - (absorbs ? 1 : 0);
  }
};

}  // namespace

int row_tiles(const Scenario& s, const ScheduleTables& tables) {
  int tiles = 0;
  for (int expert = 0; expert + 1 < static_cast<int>(tables.expert_rows.size()); ++expert) {
    tiles += ExpertBlocks(s, tables, expert).row_tiles;
  }
  return tiles;
}

TileSchedule::TileSchedule(const GemmCall& call)
    : s_(call.layer.s),
      tables_(call.round.tables[call.rank]),
      half_empty_(empty_half(call)),
      tiles_(row_tiles(s_, tables_) * s_.n_tiles()) {}

bool TileSchedule::find(int tile, TileJob& job) const {
  if (tile >= tiles_) {
    return false;
  }
  const int n_tiles = s_.n_tiles();
  int expert = 0;
  int before = 0;  // row tiles
  ExpertBlocks blocks(s_, tables_, expert);
  while (tile / n_tiles >= before + blocks.row_tiles) {
    before += blocks.row_tiles;
    blocks = ExpertBlocks(s_, tables_, ++expert);
  }
  const int within = tile - before * n_tiles;
  const int per_group = s_.block_group * n_tiles;
  const int start = within / per_group * s_.block_group;
  const int width = std::min(s_.block_group, blocks.row_tiles - start);
  const int row_tile = start + within % per_group % width;
  const int row_block = blocks.first + row_tile * s_.grouping().blocks;
  // The expert's last tile has what is left.
  const int last =
      row_tile + 1 == blocks.row_tiles ? blocks.last : row_block + s_.grouping().blocks;
  const int in_last = tables_.slack[last - 1] >= half_empty_ ? 1 : kConsumers;
  job = {row_block, within % per_group / width, expert,
         (last - 1 - row_block) * kConsumers + in_last};
  return true;
}

void read_schedule(const Thread& t, const GemmCall& c) {
  const RankPlaces& mine = c.layer.places[c.rank];
  t.read(mine.expert_rows, c.round.stamp);
  if (c.halves) {
    t.read(mine.slack, c.round.stamp);
  }
}

Task next_tile(Thread& t, const GemmCall& c, int& tile) {
  if (c.next_tile < 0) {
    tile += c.workers;
    co_return;
  }
  std::uint64_t taken = 0;
  if (c.layer.has(Bug::tile_claim_not_atomic)) {
    taken = co_await t.load(c.next_tile, Order::relaxed, Scope::gpu);
    co_await t.store(c.next_tile, taken + 1, Order::relaxed, Scope::gpu);
  } else {
    taken = co_await t.fetch_add(c.next_tile, 1, Order::relaxed, Scope::gpu);
  }
  tile = c.workers + static_cast<int>(taken);
}

}  // namespace fusescope::protocol
