// kernels/gemm/gemm_consumer.cuh, and init_control of gemm_smem.cuh.
#include <algorithm>
#include <array>
#include <limits>

#include "protocol/layer/gemm_tile.hpp"

namespace fusescope::protocol {

int staged_chunks(bool activates) {
  return activates ? kMostChunks : kMostChunks - kMostLentChunks;
}
int lent_chunks(const Scenario& s, bool activates) {
  return std::clamp(most_rows_of_group(s) - staged_chunks(activates), 0,
                    kMostChunks - staged_chunks(activates));
}
int all_chunks(const Scenario& s, bool activates) {
  return lent_chunks(s, activates) + staged_chunks(activates);
}
int consumer_warps(const Scenario& s, bool activates) {
  return lent_chunks(s, activates) > 0 ? kConsumerWarps : 1;
}

int consumers(const GemmCall& c) {
  return kConsumers * consumer_warps(c.layer.s, c.activates);
}
int slots_of(const GemmCall& c, int consumer) {
  const int in_all = consumers(c);
  return (std::max(c.row_slots, 0) - consumer + in_all - 1) / in_all;
}
Meeting meet_warp(Thread& t, const GemmCall& c, int consumer) {
  return t.meet(c.block.named + kFirstWarpBarrier + consumer, 1, 1 + slots_of(c, consumer));
}

void init_gemm(Thread& t, const GemmCall& c) {
  const int warps = consumer_warps(c.layer.s, c.activates);
  for (int i = 0; i < kStages; ++i) {
    t.init_mbarrier(c.block.full + i, 1, true);
    t.init_mbarrier(c.block.empty + i, kConsumers * warps, false);
    if (c.gathers) {
      t.init_mbarrier(c.block.rows_landed + i, 1, true);
    }
  }
  for (int i = 0; i < kConsumers * kMostChunks; ++i) {
    t.init_mbarrier(c.block.staged + i, warps, false);
    t.init_mbarrier(c.block.drained + i, 1, false);
  }
  const int unseen = c.layer.has(Bug::prepared_counts_one_too_few) ? 1 : 0;
  t.init_mbarrier(c.block.prepared, consumers(c) - unseen, false);
  if (!c.gathers) {
    t.init_mbarrier(c.block.found, 1, false);
    t.init_mbarrier(c.block.asked, 1, false);
    t.write(c.block.gave_up, 0, c.round.stamp);
  }
  for (int i = 0; i < kJoinSlots; ++i) {
    t.initialise(c.block.halves + i, 0, std::numeric_limits<std::uint64_t>::max());
  }
}

namespace {

// prepare_block. The slots have threads of their own.
Task prepare_block(Thread& t, const GemmCall& c, int consumer) {
  if (c.row_slots < 0) {
    co_return;
  }
  const bool early = c.layer.has(Bug::prepared_before_slots);
  if (early) {
    t.arrive(c.block.prepared);
  }
  co_await meet_warp(t, c, consumer);
  if (!early) {
    t.arrive(c.block.prepared);
  }
}

// Consumer::pass_over: takes part in the ring for a tile that has no rows for this group.
Task pass_over(Thread& t, const GemmCall& c, RingCursor& cursor) {
  for (int k = 0; k < c.k_steps; ++k, cursor.advance()) {
    if (!c.layer.has(Bug::passed_over_unseen)) {
      co_await t.wait_phase(c.block.full + cursor.slot, cursor.parity);
    }
    t.arrive(c.block.empty + cursor.slot);
  }
}

}  // namespace

Task consume_tiles(Thread& t, GemmCall c, int group, int warp) {
  const Layer& layer = c.layer;
  const int half = half_rows(layer.s);
  const int warps = consumer_warps(layer.s, c.activates);
  const bool lends = lent_chunks(layer.s, c.activates) > 0;
  RingCursor cursor{kStages};
  RingCursor chunk{all_chunks(layer.s, c.activates)};
  const GroupChunks chunks(c, group);

  co_await prepare_block(t, c, group * warps + warp);
  for (;;) {
    co_await t.wait_phase(c.block.full + cursor.slot, cursor.parity);
    const std::uint64_t tile = t.read(c.block.stage_tiles + cursor.slot, c.round.stamp);
    if (tile == kStop) {
      break;
    }
    const int in_tile = TileHeader::of(tile).halves;
    if (group >= in_tile && !layer.has(Bug::half_tile_computed_whole)) {
      if (layer.has(Bug::half_tile_not_passed_over)) {
        for (int k = 0; k < c.k_steps; ++k) {
          cursor.advance();
        }
        continue;
      }
      co_await pass_over(t, c, cursor);
      continue;
    }
    const int own = halves_of_group(std::max(in_tile, kConsumers), group) * half;  // rows
    std::array<std::uint64_t, kMostRowsOfGroup> sums{};
    int previous = -1;
    for (int k = 0; k < c.k_steps; ++k) {
      co_await t.wait_phase(c.block.full + cursor.slot, cursor.parity);
      if (previous >= 0) {
        t.wgmma_wait();
        t.arrive(c.block.empty + previous);
      }
      std::array<std::uint64_t, kMostRowsOfGroup> rows{};
      std::uint64_t weights = 0;
      // Which of what a group multiplies one of its warps reads, PTX does not say: here each reads all.
      const Span row = layer.smem_row(c.block, cursor.slot);
      for (int first = 0; first < own; first += half) {
        const CellId from = row.first + first * kConsumers + group * half;
        t.wgmma_read({from, half}, c.round.stamp, rows.data() + first);
      }
      t.wgmma_read({layer.smem_weights(c.block, cursor.slot)}, c.round.stamp, &weights);
      for (int i = 0; i < own; ++i) {
        sums[i] += Round::multiply(rows[i], weights);
      }
      previous = cursor.slot;
      cursor.advance();
    }
    co_await t.pause();  // it has given back the stage before, and still reads this one
    t.wgmma_wait();
    // release_last: a stage that lends room is the storer's to give back.
    if (!lends || layer.has(Bug::lent_stage_freed_by_readers)) {
      t.arrive(c.block.empty + previous);
    }
    if (lends && !layer.has(Bug::lent_barrier_missing)) {
      co_await t.meet(c.block.named + kFirstConsumerBarrier + group, kConsumerThreads / warps,
                      kConsumerThreads);
    }

    // flush: the tile's output in chunks, a row each. The warps, of which each writes a part, take turns.
    for (int i = 0; i < own; ++i) {
      if (!layer.has(Bug::chunk_drain_unwatched)) {
        co_await t.wait_phase(chunks.drained + chunk.slot, chunk.parity ^ 1);
      }
      if (i % warps == warp) {
        t.write(chunk_cell(c, group, chunk.slot, previous),
                c.activates ? Round::activate(sums[i]) : sums[i], c.round.stamp);
      }
      if (!layer.has(Bug::staged_proxy_fence_missing)) {
        t.fence_proxy_async();
      }
      if (warp == 0) {
        t.write(chunks.tiles + chunk.slot, tile, c.round.stamp);
        t.write(chunks.lenders + chunk.slot, static_cast<std::uint64_t>(previous), c.round.stamp);
      }
      t.arrive(chunks.staged + chunk.slot);
      chunk.advance();
    }
  }
  co_await t.wait_phase(chunks.drained + chunk.slot, chunk.parity ^ 1);
  if (warp == 0) {
    t.write(chunks.tiles + chunk.slot, kStop, c.round.stamp);
  }
  t.arrive(chunks.staged + chunk.slot);
}

}  // namespace fusescope::protocol
