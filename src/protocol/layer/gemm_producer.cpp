// kernels/gemm/gemm_producer.cuh and gemm_gather.cuh. The producer's warp is one thread.
#include <algorithm>

#include "protocol/layer/gemm_gate.hpp"
#include "protocol/layer/gemm_schedule.hpp"
#include "protocol/layer/gemm_tile.hpp"

namespace fusescope::protocol {
namespace {

// Stages before a tile's last that the next is asked for.
constexpr int kAskedAhead = 1;

struct Place {
  RingCursor cursor{kStages};
  int early = 0;  // stages ahead of the cursor whose weights are already on their way
};

void load_weights(Thread& t, const GemmCall& c, int slot, int k, const TileJob& job) {
  t.start_constant_load({c.layer.smem_weights(c.block, slot)},
                        Round::weights(c.which, c.rank, job.expert, job.n_tile, k), c.round.stamp,
                        c.block.full + slot);
}

// Of as many first stages as are free.
Task load_weights_ahead(Thread& t, const GemmCall& c, const TileJob& job, Place& place) {
  RingCursor ahead = place.cursor;
  while (place.early < kStages && place.early < c.k_steps &&
         t.has_passed(c.block.empty + ahead.slot, ahead.parity ^ 1)) {
    co_await t.wait_phase(c.block.empty + ahead.slot, ahead.parity ^ 1);  // passed: no wait
    t.expect_copies(c.block.full + ahead.slot, 1);
    load_weights(t, c, ahead.slot, place.early, job);
    ++place.early;
    ahead.advance();
  }
}

// The gate was shut.
Task open_gate(Thread& t, const GemmCall& c, const TileJob& job, bool stopped, Place& place,
               bool& open) {
  co_await load_weights_ahead(t, c, job, place);
  co_await wait_open(t, c, job, stopped, open);
}

// The rows of one stage, by the copy engine.
void load_rows(Thread& t, const GemmCall& c, int slot, int k, const TileJob& job, bool is_early) {
  const Layer& layer = c.layer;
  const int half = half_rows(layer.s);
  const int expected =
      layer.has(Bug::half_tile_expected_whole) ? std::max(job.halves, kConsumers) : job.halves;
  t.arrive_expecting(c.block.full + slot, expected + (is_early ? 0 : 1));
  for (int i = 0; i < job.halves; ++i) {
    const int row_block = job.row_block + i / kConsumers;
    const int first = i % kConsumers * half;  // in its row block
    const int slack = c.a_has_padding ? c.round.tables[c.rank].slack[row_block] : 0;
    const CellId rows = c.a + row_block * c.a_per_block + k * c.a_per_step + first;
    t.start_load({layer.smem_row(c.block, slot).first + i * half, half}, {rows, half},
                 std::clamp(layer.s.row_block - slack - first, 0, half), c.round.stamp,
                 c.block.full + slot, c.rank);
  }
  if (!is_early) {
    load_weights(t, c, slot, k, job);
  }
}

// GatheringProducer: from where the table says, by the warp's own copies. Padding has the rank's first token.
void gather_rows(Thread& t, const GemmCall& c, int slot, int k, const TileJob& job, bool is_early) {
  const Layer& layer = c.layer;
  if (!is_early) {
    t.expect_copies(c.block.full + slot, 1);
    load_weights(t, c, slot, k, job);
  }
  const int all_rows = job.halves * half_rows(layer.s);
  const int rows =
      layer.has(Bug::gathered_first_block_only) ? std::min(all_rows, layer.s.row_block) : all_rows;
  const MbarrierId landed = c.block.rows_landed + slot;
  t.arrive_expecting(landed, rows);
  for (int row = 0; row < rows; ++row) {
    const int token = c.round.tables[c.rank].token_of_slot[job.row_block * layer.s.row_block + row];
    t.start_plain_load({layer.smem_row(c.block, slot).first + row},
                       {layer.among_all(c.rank, token)}, c.round.stamp, landed, c.rank);
  }
}

// On its way, where there is a scheduler, asks it for the next tile.
Task load_tile(Thread& t, const GemmCall& c, const TileJob& job, Place& place) {
  const Layer& layer = c.layer;
  const int ask_at = std::max(c.k_steps - kAskedAhead, 0);
  for (int k = 0; k < c.k_steps; ++k) {
    if (k == ask_at && !c.gathers && !layer.has(Bug::next_asked_early)) {
      t.arrive(c.block.asked);
    }
    const int slot = place.cursor.slot;
    const bool is_early = k < place.early;
    // Where rows are gathered, a stage with early weights is waited for again: it is free.
    if ((!is_early || c.gathers) && !layer.has(Bug::ring_reused_early)) {
      co_await t.wait_phase(c.block.empty + slot, place.cursor.parity ^ 1);
    }
    if (k == 0) {
      t.write(c.block.stage_tiles + slot, TileHeader{job.row_block, job.n_tile, job.halves}.word(),
              c.round.stamp);
    }
    if (c.gathers) {
      gather_rows(t, c, slot, k, job, is_early);
    } else {
      load_rows(t, c, slot, k, job, is_early);
    }
    place.cursor.advance();
  }
  place.early = 0;
}

void tell_given_up(Thread& t, const GemmCall& c) {
  const Layer& layer = c.layer;
  if (!layer.has(Bug::gave_up_unsaid)) {
    t.write(c.block.gave_up, 1, c.round.stamp);
  }
  if (!layer.has(Bug::gave_up_without_arrival)) {
    t.arrive(c.block.asked);
  }
}

// Tells the consumers to leave, and does not return before every copy issued has landed.
Task stop(Thread& t, const GemmCall& c, Place place) {
  RingCursor& cursor = place.cursor;
  if (place.early == 0) {
    co_await t.wait_phase(c.block.empty + cursor.slot, cursor.parity ^ 1);
  }
  t.write(c.block.stage_tiles + cursor.slot, kStop, c.round.stamp);
  t.arrive((c.gathers ? c.block.rows_landed : c.block.full) + cursor.slot);
  for (int i = 0; i < place.early; ++i, cursor.advance()) {
    if (i > 0) {
      t.arrive(c.block.full + cursor.slot);
    }
    co_await t.wait_phase(c.block.full + cursor.slot, cursor.parity);
  }
}

// Until the ring is the producer's.
Task await_prepared(Thread& t, const GemmCall& c) {
  if (c.row_slots >= 0 && !c.layer.has(Bug::prepared_unwatched)) {
    co_await t.wait_phase(c.block.prepared, 0);
  }
}

}  // namespace

Task produce_tiles(Thread& t, GemmCall c) {
  const Layer& layer = c.layer;
  const TileSchedule schedule(c);
  Place place;
  TileJob job{};
  const std::uint64_t stopped = co_await layer.aborted(t);
  co_await await_prepared(t, c);
  for (std::uint32_t parity = 0;; parity ^= 1) {
    co_await t.wait_phase(c.block.found, parity);
    if (layer.has(Bug::next_asked_early)) {
      t.arrive(c.block.asked);
    }
    const std::uint64_t word = t.read(c.block.next, c.round.stamp);
    if (word == kStop) {
      break;
    }
    const NextTile next = NextTile::of(word);
    schedule.find(next.tile, job);
    bool open = next.is_open || layer.has(Bug::shut_gate_passed);
    if (!open) {
      co_await open_gate(t, c, job, stopped != 0, place, open);
    }
    if (!open) {
      tell_given_up(t, c);
      break;
    }
    co_await load_tile(t, c, job, place);
  }
  co_await stop(t, c, place);
}

Task gather_tiles(Thread& t, GemmCall c) {
  const Layer& layer = c.layer;
  read_schedule(t, c);
  t.read(layer.places[c.rank].token_of_slot, c.round.stamp);
  const TileSchedule schedule(c);
  Place place;
  TileJob job{};
  const std::uint64_t stopped = co_await layer.aborted(t);
  int tile = c.worker;
  bool found = schedule.find(tile, job);
  co_await await_prepared(t, c);
  for (; found; found = schedule.find(tile, job)) {
    bool open = false;
    co_await are_open(t, c, job, stopped != 0, open);
    if (!open) {
      co_await open_gate(t, c, job, stopped != 0, place, open);
    }
    if (!open) {
      break;
    }
    co_await load_tile(t, c, job, place);
    co_await next_tile(t, c, tile);
  }
  co_await stop(t, c, place);
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
