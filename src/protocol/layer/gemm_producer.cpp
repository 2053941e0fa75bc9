// kernels/gemm/gemm_producer.cuh and gemm_schedule.cuh.
#include <algorithm>
#include <limits>

#include "protocol/layer/gemm_tile.hpp"

namespace fusescope::protocol {
namespace {

struct TileJob {
  int row_block, n_tile, expert;
  int halves;  // of the row block that hold rows
};

// gemm_schedule.cuh: tiles in slot order, dealt out round robin.
class Schedule {
 public:
  explicit Schedule(const GemmCall& call)
      : tables_(call.round.tables[call.rank]),
        row_block_(call.layer.s.row_block),
        half_empty_(empty_half(call)),
        n_tiles_(call.layer.s.n_tiles()),
        group_(call.layer.s.block_group),
        tiles_(tables_.row_blocks() * n_tiles_),
        next_(call.worker),
        step_(call.workers) {}

  bool next(TileJob& job) {
    if (next_ >= tiles_) {
      return false;
    }
    int expert = 0;
    while (tables_.expert_rows[expert + 1] <= next_ / n_tiles_ * row_block_) {
      ++expert;
    }
    const int first = tables_.expert_rows[expert] / row_block_;
    const int last = tables_.expert_rows[expert + 1] / row_block_;
    const int within = next_ - first * n_tiles_;
    const int per_group = group_ * n_tiles_;
    const int start = first + within / per_group * group_;
    const int width = std::min(group_, last - start);
    const int row_block = start + within % per_group % width;
    const int halves = tables_.slack[row_block] >= half_empty_ ? 1 : kConsumers;
    job = {row_block, within % per_group / width, expert, halves};
    next_ += step_;
    return true;
  }

 private:
  // The slack from which on a row block's second half is left out.
  static int empty_half(const GemmCall& call) {
    if (!call.halves) {
      return std::numeric_limits<int>::max();
    }
    const bool early = call.layer.has(Bug::half_left_out_early);
    return half_rows(call.layer.s) - (early ? 1 : 0);
  }

  const ScheduleTables& tables_;
  int row_block_, half_empty_, n_tiles_, group_, tiles_, next_, step_;
};

void load_weights(Thread& t, const GemmCall& c, int slot, int k, const TileJob& job) {
  t.start_constant_load({c.layer.smem_weights(c.block, slot)},
                        Round::weights(c.which, c.rank, job.expert, job.n_tile, k), c.round.stamp,
                        c.block.full + slot);
}

Order gate_order(const GemmCall& c) {
  return c.layer.has(Bug::gate_relaxed) ? Order::relaxed : Order::acquire;
}

}  // namespace

Task produce_tiles(Thread& t, GemmCall c) {
  const Layer& layer = c.layer;
  const ScheduleTables& tables = c.round.tables[c.rank];
  t.read(layer.places[c.rank].expert_rows, c.round.stamp);
  if (c.halves) {
    t.read(layer.places[c.rank].slack, c.round.stamp);
  }
  RingCursor cursor{kStages};
  int early = 0;  // stages ahead of the cursor whose weights are already on their way
  Schedule schedule(c);
  TileJob job{};

  // Gates of both kernels look once at the abort word: none opens after an earlier phase was aborted.
  const std::uint64_t stopped = co_await layer.aborted(t);
  while (stopped == 0 && schedule.next(job)) {
    if (c.gate >= 0) {
      const WordId gate = c.gate + job.row_block;
      const std::uint64_t arrived = co_await t.load(gate, gate_order(c), Scope::gpu);
      bool open = arrived >= c.open_at;
      if (!open) {
        RingCursor ahead = cursor;
        while (early < kStages && early < c.k_steps &&
               t.has_passed(c.block.empty + ahead.slot, ahead.parity ^ 1)) {
          co_await t.wait_phase(c.block.empty + ahead.slot, ahead.parity ^ 1);  // passed: no wait
          t.expect_copies(c.block.full + ahead.slot, 1);
          load_weights(t, c, ahead.slot, early, job);
          ++early;
          ahead.advance();
        }
        open = co_await t.wait_at_least(gate, c.open_at, gate_order(c), Scope::gpu,
                                        !layer.has(Bug::gate_wait_unguarded));
      }
      if (!open) {
        break;
      }
      if (!layer.has(Bug::gate_proxy_fence_missing)) {
        t.fence_proxy_async();
      }
    }
    const int half = half_rows(layer.s);
    const int filled = layer.s.row_block - (c.a_has_padding ? tables.slack[job.row_block] : 0);
    const int expected = layer.has(Bug::half_tile_expected_whole) ? kConsumers : job.halves;
    for (int k = 0; k < c.k_steps; ++k) {
      const int slot = cursor.slot;
      const bool is_early = k < early;
      if (!is_early && !layer.has(Bug::ring_reused_early)) {
        co_await t.wait_phase(c.block.empty + slot, cursor.parity ^ 1);
      }
      if (k == 0) {
        t.write(c.block.stage_tiles + slot,
                TileHeader{job.row_block, job.n_tile, job.halves}.word(), c.round.stamp);
      }
      t.arrive_expecting(c.block.full + slot, expected + (is_early ? 0 : 1));
      const CellId rows = c.a + job.row_block * c.a_per_block + k * c.a_per_step;
      for (int first = 0; first < job.halves * half; first += half) {
        t.start_load({layer.smem_row(c.block, slot).first + first, half}, {rows + first, half},
                     std::clamp(filled - first, 0, half), c.round.stamp, c.block.full + slot,
                     c.rank);
      }
      if (!is_early) {
        load_weights(t, c, slot, k, job);
      }
      cursor.advance();
    }
    early = 0;
  }
  // Tells the consumers to leave, and does not return before every copy issued has landed.
  if (early == 0) {
    co_await t.wait_phase(c.block.empty + cursor.slot, cursor.parity ^ 1);
  }
  t.write(c.block.stage_tiles + cursor.slot, kStop, c.round.stamp);
  t.arrive(c.block.full + cursor.slot);
  RingCursor ahead = cursor;
  for (int i = 0; i < early; ++i, ahead.advance()) {
    if (i > 0) {
      t.arrive(c.block.full + ahead.slot);
    }
    co_await t.wait_phase(c.block.full + ahead.slot, ahead.parity);
  }
}

}  // namespace fusescope::protocol
