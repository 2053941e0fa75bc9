// kernels/gemm/gemm_producer.cuh and gemm_gather.cuh. The producer's warp is one thread.
#include <algorithm>

#include "protocol/layer/gemm_schedule.hpp"
#include "protocol/layer/gemm_tile.hpp"

namespace fusescope::protocol {
namespace {

void load_weights(Thread& t, const GemmCall& c, int slot, int k, const TileJob& job) {
  t.start_constant_load({c.layer.smem_weights(c.block, slot)},
                        Round::weights(c.which, c.rank, job.expert, job.n_tile, k), c.round.stamp,
                        c.block.full + slot);
}

Order gate_order(const GemmCall& c) {
  const Bug relaxed = c.which == 1 ? Bug::gate_relaxed : Bug::computed_gate_relaxed;
  return c.layer.has(relaxed) ? Order::relaxed : Order::acquire;
}

// CounterGate, and the weights that are loaded while it is shut: of `early` stages from the cursor on.
Task open_gate(Thread& t, const GemmCall& c, const TileJob& job, RingCursor cursor, int& early,
               bool& open) {
  const Layer& layer = c.layer;
  const bool first = c.which == 1;
  const WordId gate = c.gate + job.row_block;
  const std::uint64_t counted = co_await t.load(gate, gate_order(c), Scope::gpu);
  open = counted >= c.open_at;
  if (!open) {
    while (early < kStages && early < c.k_steps &&
           t.has_passed(c.block.empty + cursor.slot, cursor.parity ^ 1)) {
      co_await t.wait_phase(c.block.empty + cursor.slot, cursor.parity ^ 1);  // passed: no wait
      t.expect_copies(c.block.full + cursor.slot, 1);
      load_weights(t, c, cursor.slot, early, job);
      ++early;
      cursor.advance();
    }
    const Bug unguarded = first ? Bug::gate_wait_unguarded : Bug::computed_gate_wait_unguarded;
    open =
        co_await t.wait_at_least(gate, c.open_at, gate_order(c), Scope::gpu, !layer.has(unguarded));
  }
  const Bug unfenced =
      first ? Bug::gate_proxy_fence_missing : Bug::computed_gate_proxy_fence_missing;
  if (open && !layer.has(unfenced)) {
    t.fence_proxy_async();
  }
}

// The rows of one stage, by the copy engine.
void load_rows(Thread& t, const GemmCall& c, int slot, int k, const TileJob& job, bool is_early) {
  const Layer& layer = c.layer;
  const int half = half_rows(layer.s);
  const int slack = c.round.tables[c.rank].slack[job.row_block];
  const int filled = layer.s.row_block - (c.a_has_padding ? slack : 0);
  const int expected = layer.has(Bug::half_tile_expected_whole) ? kConsumers : job.halves;
  t.arrive_expecting(c.block.full + slot, expected + (is_early ? 0 : 1));
  const CellId rows = c.a + job.row_block * c.a_per_block + k * c.a_per_step;
  for (int first = 0; first < job.halves * half; first += half) {
    t.start_load({layer.smem_row(c.block, slot).first + first, half}, {rows + first, half},
                 std::clamp(filled - first, 0, half), c.round.stamp, c.block.full + slot, c.rank);
  }
  if (!is_early) {
    load_weights(t, c, slot, k, job);
  }
}

// GatheringProducer: from where the table says, by the warp's own copies. Padding has the rank's first token.
void gather_rows(Thread& t, const GemmCall& c, int slot, int k, const TileJob& job, bool is_early) {
  const Layer& layer = c.layer;
  const RankPlaces& mine = layer.places[c.rank];
  if (!is_early) {
    t.expect_copies(c.block.full + slot, 1);
    load_weights(t, c, slot, k, job);
  }
  const int rows = job.halves * half_rows(layer.s);
  const MbarrierId landed = c.block.rows_landed + slot;
  t.arrive_expecting(landed, rows);
  for (int row = 0; row < rows; ++row) {
    const int token = c.round.tables[c.rank].token_of_slot[job.row_block * layer.s.row_block + row];
    const bool own = layer.source_rank(token) == c.rank;
    const CellId from =
        own ? mine.tokens + token % layer.s.tokens_per_rank : mine.all_tokens + token;
    t.start_plain_load({layer.smem_row(c.block, slot).first + row}, {from}, c.round.stamp, landed,
                       c.rank);
  }
}

// Tells the consumers to leave, and does not return before every copy issued has landed.
Task stop(Thread& t, const GemmCall& c, RingCursor cursor, int early) {
  if (early == 0) {
    co_await t.wait_phase(c.block.empty + cursor.slot, cursor.parity ^ 1);
  }
  t.write(c.block.stage_tiles + cursor.slot, kStop, c.round.stamp);
  t.arrive((c.gathers ? c.block.rows_landed : c.block.full) + cursor.slot);
  for (int i = 0; i < early; ++i, cursor.advance()) {
    if (i > 0) {
      t.arrive(c.block.full + cursor.slot);
    }
    co_await t.wait_phase(c.block.full + cursor.slot, cursor.parity);
  }
}

}  // namespace

Task produce_tiles(Thread& t, GemmCall c) {
  const Layer& layer = c.layer;
  t.read(layer.places[c.rank].expert_rows, c.round.stamp);
  if (c.halves) {
    t.read(layer.places[c.rank].slack, c.round.stamp);
  }
  if (c.gathers) {
    t.read(layer.places[c.rank].token_of_slot, c.round.stamp);
  }
  RingCursor cursor{kStages};
  int early = 0;  // stages ahead of the cursor whose weights are already on their way
  const TileSchedule schedule(c);
  int tile = c.worker;
  TileJob job{};

  // Gates of both kernels look once at the abort word: none opens after an earlier phase was aborted.
  const std::uint64_t stopped = co_await layer.aborted(t);
  while (stopped == 0 && schedule.find(tile, job)) {
    if (c.gate >= 0) {
      bool open = false;
      co_await open_gate(t, c, job, cursor, early, open);
      if (!open) {
        break;
      }
    }
    for (int k = 0; k < c.k_steps; ++k) {
      const int slot = cursor.slot;
      const bool is_early = k < early;
      // Where rows are gathered, a stage with early weights is waited for again: it is free.
      if ((!is_early || c.gathers) && !layer.has(Bug::ring_reused_early)) {
        co_await t.wait_phase(c.block.empty + slot, cursor.parity ^ 1);
      }
      if (k == 0) {
        t.write(c.block.stage_tiles + slot,
                TileHeader{job.row_block, job.n_tile, job.halves}.word(), c.round.stamp);
      }
      if (c.gathers) {
        gather_rows(t, c, slot, k, job, is_early);
      } else {
        load_rows(t, c, slot, k, job, is_early);
      }
      cursor.advance();
    }
    early = 0;
    co_await next_tile(t, c, tile);
  }
  co_await stop(t, c, cursor, early);
}

Task relay_stages(Thread& t, GemmCall c) {
  const Layer& layer = c.layer;
  RingCursor cursor{kStages};
  for (bool stops = false; !stops;) {
    for (int k = 0; k < c.k_steps && !stops; ++k, cursor.advance()) {
      // A stage is full for its first reader, too, only when its rows are there.
      if (k == 0 || !layer.has(Bug::relay_rows_unwatched)) {
        co_await t.wait_phase(c.block.rows_landed + cursor.slot, cursor.parity);
      }
      stops = k == 0 && t.read(c.block.stage_tiles + cursor.slot, c.round.stamp) == kStop;
      if (!layer.has(Bug::relay_fence_missing)) {
        t.fence_proxy_async();
      }
      t.arrive(c.block.full + cursor.slot);
    }
  }
}

}  // namespace fusescope::protocol
