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

}  // namespace

TileSchedule::TileSchedule(const GemmCall& call)
    : tables_(call.round.tables[call.rank]),
      row_block_(call.layer.s.row_block),
      half_empty_(empty_half(call)),
      n_tiles_(call.layer.s.n_tiles()),
      group_(call.layer.s.block_group),
      tiles_(tables_.row_blocks() * n_tiles_) {}

bool TileSchedule::find(int tile, TileJob& job) const {
  if (tile >= tiles_) {
    return false;
  }
  int expert = 0;
  while (tables_.expert_rows[expert + 1] <= tile / n_tiles_ * row_block_) {
    ++expert;
  }
  const int first = tables_.expert_rows[expert] / row_block_;
  const int last = tables_.expert_rows[expert + 1] / row_block_;
  const int within = tile - first * n_tiles_;
  const int per_group = group_ * n_tiles_;
  const int start = first + within / per_group * group_;
  const int width = std::min(group_, last - start);
  const int row_block = start + within % per_group % width;
  const int halves = tables_.slack[row_block] >= half_empty_ ? 1 : kConsumers;
  job = {row_block, within % per_group / width, expert, halves};
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
