#include "protocol/layer/gemm.hpp"

#include <algorithm>

namespace fusescope::protocol {
namespace {

constexpr std::uint64_t kStop = ~0ull;

struct TileJob {
  int row_block, n_tile, expert;
};

std::uint64_t header(const TileJob& job) {
  return static_cast<std::uint64_t>(job.row_block) * 64 + static_cast<std::uint64_t>(job.n_tile);
}
int row_block_of(std::uint64_t header) {
  return static_cast<int>(header / 64);
}
int n_tile_of(std::uint64_t header) {
  return static_cast<int>(header % 64);
}

// gemm_schedule.cuh: tiles in slot order, dealt out round robin.
class Schedule {
 public:
  explicit Schedule(const GemmCall& call)
      : tables_(call.round.tables[call.rank]),
        row_block_(call.layer.s.row_block),
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
    job = {start + within % per_group % width, within % per_group / width, expert};
    next_ += step_;
    return true;
  }

 private:
  const ScheduleTables& tables_;
  int row_block_, n_tiles_, group_, tiles_, next_, step_;
};

void load_weights(Thread& t, const GemmCall& c, int slot, int k, const TileJob& job) {
  t.start_constant_load({c.layer.smem_weights(c.block, slot)},
                        Round::weights(c.which, c.rank, job.expert, job.n_tile, k), c.round.stamp,
                        c.block.full + slot);
}

// A chunk of a consumer group's output: staged in a row behind the ring, in the group's half of it.
CellId staged_cell(const GemmCall& c, int group, int slot) {
  return c.layer.smem_row(c.block, kStages + slot).first +
         group * (c.layer.s.row_block / kConsumers);
}

Order gate_order(const GemmCall& c) {
  return c.layer.has(Bug::gate_relaxed) ? Order::relaxed : Order::acquire;
}

}  // namespace

void init_gemm(Thread& t, const GemmCall& c) {
  for (int i = 0; i < kStages; ++i) {
    t.init_mbarrier(c.block.full + i, 1, true);
    t.init_mbarrier(c.block.empty + i, kConsumers, false);
  }
  for (int i = 0; i < kConsumers * kStagedPerConsumer; ++i) {
    t.init_mbarrier(c.block.staged + i, 1, false);
    t.init_mbarrier(c.block.drained + i, 1, false);
  }
  for (int i = 0; i < kJoinSlots; ++i) {
    t.initialise(c.block.halves + i, 0, std::numeric_limits<std::uint64_t>::max());
  }
}

Task produce_tiles(Thread& t, GemmCall c) {
  const Layer& layer = c.layer;
  const ScheduleTables& tables = c.round.tables[c.rank];
  t.read(layer.places[c.rank].expert_rows, c.round.stamp);
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
    for (int k = 0; k < c.k_steps; ++k) {
      const int slot = cursor.slot;
      const bool is_early = k < early;
      if (!is_early && !layer.has(Bug::ring_reused_early)) {
        co_await t.wait_phase(c.block.empty + slot, cursor.parity ^ 1);
      }
      if (k == 0) {
        t.write(c.block.stage_tiles + slot, header(job), c.round.stamp);
      }
      t.arrive_expecting(c.block.full + slot, is_early ? 1 : 2);
      const int rows = layer.s.row_block;
      t.start_load(layer.smem_row(c.block, slot),
                   {c.a + job.row_block * c.a_per_block + k * c.a_per_step, rows},
                   c.a_has_padding ? rows - tables.slack[job.row_block] : rows, c.round.stamp,
                   c.block.full + slot, c.rank);
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

Task consume_tiles(Thread& t, GemmCall c, int group) {
  const Layer& layer = c.layer;
  const int half = layer.s.row_block / kConsumers;
  const MbarrierId staged = c.block.staged + group * kStagedPerConsumer;
  const MbarrierId drained = c.block.drained + group * kStagedPerConsumer;
  const CellId chunk_tiles = c.block.chunk_tiles + group * kStagedPerConsumer;
  RingCursor cursor{kStages};
  RingCursor chunk{kStagedPerConsumer};

  for (;;) {
    co_await t.wait_phase(c.block.full + cursor.slot, cursor.parity);
    const std::uint64_t tile = t.read(c.block.stage_tiles + cursor.slot, c.round.stamp);
    if (tile == kStop) {
      break;
    }
    std::array<std::uint64_t, 8> sums{};
    int previous = -1;
    for (int k = 0; k < c.k_steps; ++k) {
      co_await t.wait_phase(c.block.full + cursor.slot, cursor.parity);
      if (previous >= 0) {
        t.wgmma_wait();
        t.arrive(c.block.empty + previous);
      }
      std::array<std::uint64_t, 8> rows{};
      std::uint64_t weights = 0;
      const Span row = layer.smem_row(c.block, cursor.slot);
      t.wgmma_read({row.first + group * half, half}, c.round.stamp, rows.data());
      t.wgmma_read({layer.smem_weights(c.block, cursor.slot)}, c.round.stamp, &weights);
      for (int i = 0; i < half; ++i) {
        sums[i] += Round::multiply(rows[i], weights);
      }
      previous = cursor.slot;
      cursor.advance();
    }
    t.wgmma_wait();
    t.arrive(c.block.empty + previous);

    // flush: the tile's output in chunks, a row each.
    for (int i = 0; i < half; ++i) {
      if (!layer.has(Bug::chunk_drain_unwatched)) {
        co_await t.wait_phase(drained + chunk.slot, chunk.parity ^ 1);
      }
      t.write(staged_cell(c, group, chunk.slot), c.activates ? Round::activate(sums[i]) : sums[i],
              c.round.stamp);
      if (!layer.has(Bug::staged_proxy_fence_missing)) {
        t.fence_proxy_async();
      }
      t.write(chunk_tiles + chunk.slot, tile, c.round.stamp);
      t.arrive(staged + chunk.slot);
      chunk.advance();
    }
  }
  co_await t.wait_phase(drained + chunk.slot, chunk.parity ^ 1);
  t.write(chunk_tiles + chunk.slot, kStop, c.round.stamp);
  t.arrive(staged + chunk.slot);
}

Task store_tiles(Thread& t, GemmCall c, int group) {
  const Layer& layer = c.layer;
  const int half = layer.s.row_block / kConsumers;
  const MbarrierId staged = c.block.staged + group * kStagedPerConsumer;
  const MbarrierId drained = c.block.drained + group * kStagedPerConsumer;
  const CellId chunk_tiles = c.block.chunk_tiles + group * kStagedPerConsumer;
  RingCursor cursor{kStagedPerConsumer};

  for (int tile_count = 0;; ++tile_count) {
    std::uint64_t tile = 0;
    for (int chunk = 0; chunk < half; ++chunk) {
      co_await t.wait_phase(staged + cursor.slot, cursor.parity);
      tile = t.read(chunk_tiles + cursor.slot, c.round.stamp);
      if (tile == kStop) {
        co_await t.wait_stored();
        co_return;
      }
      t.start_store(
          {layer.tile_cells(c.d, row_block_of(tile), n_tile_of(tile)) + group * half + chunk},
          {staged_cell(c, group, cursor.slot)}, c.round.stamp, c.rank);
      t.commit_group();
      // One copy stays in flight behind the next; the tile's last two go back together.
      if (chunk > 0) {
        co_await t.wait_read(1);
        t.arrive(drained + (cursor.slot ^ 1));
      }
      if (chunk == half - 1) {
        co_await t.wait_read();
        t.arrive(drained + cursor.slot);
      }
      cursor.advance();
    }
    if (c.signal >= 0) {
      co_await t.wait_stored();
      if (!layer.has(Bug::stored_proxy_fence_missing)) {
        t.fence_proxy_async();
      }
      const int join = layer.has(Bug::join_slots_too_few) ? 0 : tile_count % kJoinSlots;
      const std::uint64_t before =
          co_await t.fetch_add(c.block.halves + join, 1, Order::acq_rel, Scope::block);
      if (before % 2 == (layer.has(Bug::first_half_signals) ? 0u : 1u)) {
        if (c.loses_tile && tile == 0) {
          continue;
        }
        const Order order = layer.has(Bug::done_relaxed) ? Order::relaxed : Order::release;
        co_await t.fetch_add(c.signal + row_block_of(tile), 1, order, Scope::gpu);
      }
    }
  }
}

}  // namespace fusescope::protocol
