// kernels/gemm/gemm_storer.cuh.
#include "protocol/layer/gemm_tile.hpp"

namespace fusescope::protocol {
namespace {

// The tiles that both storers hear of take turns with the join slots.
Task second_to_store(Thread& t, const GemmCall& c, int whole_tile, bool& second) {
  const Layer& layer = c.layer;
  const int slot = layer.has(Bug::join_slots_too_few) ? 0 : whole_tile % kJoinSlots;
  const Order order = layer.has(Bug::halves_joined_relaxed) ? Order::relaxed : Order::acq_rel;
  const std::uint64_t before = co_await t.fetch_add(c.block.halves + slot, 1, order, Scope::block);
  second = before % 2 == (layer.has(Bug::first_half_signals) ? 0u : 1u);
}

// Whether a storer that has written its rows of the tile signals it: the only one does, or the second.
Task is_to_signal(Thread& t, const GemmCall& c, const TileHeader& tile, int& whole_tiles,
                  bool& signals) {
  const Layer& layer = c.layer;
  const bool alone = tile.halves == 1;
  const bool joins =
      !alone || layer.has(Bug::lone_half_waits_for_second) || layer.has(Bug::lone_half_counted);
  if (joins) {
    co_await second_to_store(t, c, whole_tiles, signals);
  }
  if (joins || layer.has(Bug::lone_half_takes_slot)) {
    ++whole_tiles;
  }
  if (alone && !layer.has(Bug::lone_half_waits_for_second)) {
    signals = true;
  }
}

}  // namespace

Task store_tiles(Thread& t, GemmCall c, int group) {
  const Layer& layer = c.layer;
  const int half = half_rows(layer.s);
  const MbarrierId staged = c.block.staged + group * kStagedPerConsumer;
  const MbarrierId drained = c.block.drained + group * kStagedPerConsumer;
  const CellId chunk_tiles = c.block.chunk_tiles + group * kStagedPerConsumer;
  RingCursor cursor{kStagedPerConsumer};

  int whole_tiles = 0;
  for (;;) {
    TileHeader tile{};
    for (int chunk = 0; chunk < half; ++chunk) {
      co_await t.wait_phase(staged + cursor.slot, cursor.parity);
      const std::uint64_t header = t.read(chunk_tiles + cursor.slot, c.round.stamp);
      if (header == kStop) {
        co_await t.wait_stored();
        co_return;
      }
      tile = TileHeader::of(header);
      t.start_store({layer.tile_cells(c.d, tile.row_block, tile.n_tile) + group * half + chunk},
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
      bool signals = false;
      co_await is_to_signal(t, c, tile, whole_tiles, signals);
      if (signals) {
        if (c.loses_tile && tile.row_block == 0 && tile.n_tile == 0) {
          continue;
        }
        const Bug relaxed = c.which == 1 ? Bug::computed_relaxed : Bug::done_relaxed;
        const Order order = layer.has(relaxed) ? Order::relaxed : Order::release;
        co_await t.fetch_add(c.signal + tile.row_block, 1, order, Scope::gpu);
      }
    }
  }
}

}  // namespace fusescope::protocol
