// kernels/gemm/gemm_storer.cuh.
#include <algorithm>

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

// To each of the tile's row blocks.
Task signal_tile(Thread& t, const GemmCall& c, const TileHeader& tile) {
  const Layer& layer = c.layer;
  const Bug relaxed = c.which == 1 ? Bug::computed_relaxed : Bug::done_relaxed;
  const Order order = layer.has(relaxed) ? Order::relaxed : Order::release;
  const int blocks = layer.has(Bug::first_block_signalled) ? 1 : row_blocks_of(tile.halves);
  for (int block = tile.row_block; block < tile.row_block + blocks; ++block) {
    if (!c.loses_tile || block != 0 || tile.n_tile != 0) {
      co_await t.fetch_add(c.signal + block, 1, order, Scope::gpu);
    }
  }
}

// kernels/gemm/staged_chunks.cuh: a storer's way through its group's chunks.
class StagedChunks {
 public:
  StagedChunks(Thread& t, const GemmCall& c, int group)
      : t_(t),
        c_(c),
        group_(group),
        chunks_(c, group),
        all_(all_chunks(c.layer.s, c.activates)),
        lends_(lent_chunks(c.layer.s, c.activates) > 0) {}

  WaitPhase staged() { return t_.wait_phase(chunks_.staged + cursor_.slot, cursor_.parity); }
  std::uint64_t header() {
    const std::uint64_t header = t_.read(chunks_.tiles + cursor_.slot, c_.round.stamp);
    const bool kept = c_.layer.has(Bug::lender_kept) && lender_ >= 0;
    if (header != kStop && lends_ && !kept) {
      lender_ = static_cast<int>(t_.read(chunks_.lenders + cursor_.slot, c_.round.stamp));
    }
    return header;
  }
  CellId cell() const { return chunk_cell(c_, group_, cursor_.slot, lender_); }

  // Copies that are read while another is started.
  int unread() const { return all_ / 2; }
  // The chunk's copy has been started. Whether one goes back, when it has been read: the one `unread` before.
  bool hands_back() { return ++in_tile_ > unread(); }
  void hand_back(int behind) { t_.arrive(chunks_.drained + (cursor_.slot + all_ - behind) % all_); }
  void advance() { cursor_.advance(); }

  // Behind a tile's last chunk, when all have been read.
  void hand_back_rest() {
    for (int behind = std::min(in_tile_, unread()); behind > 0; --behind) {
      hand_back(behind);
    }
    in_tile_ = 0;
  }
  // The one that lent room; for all warps of the group.
  void return_stage() {
    if (lends_ && !c_.layer.has(Bug::lent_stage_freed_by_readers)) {
      t_.arrive(c_.block.empty + lender_, consumer_warps(c_.layer.s, c_.activates));
    }
  }

 private:
  Thread& t_;
  const GemmCall& c_;
  int group_;
  GroupChunks chunks_;
  int all_;
  bool lends_;
  RingCursor cursor_{all_};
  int in_tile_ = 0;  // chunks of the tile so far
  int lender_ = -1;  // its last stage
};

}  // namespace

Task store_tiles(Thread& t, GemmCall c, int group) {
  const Layer& layer = c.layer;
  StagedChunks chunks(t, c, group);

  int whole_tiles = 0;
  for (;;) {
    TileHeader tile{};
    int in_tile = 1;  // chunks, once the first is here
    for (int chunk = 0; chunk < in_tile; ++chunk) {
      co_await chunks.staged();
      const std::uint64_t header = chunks.header();
      if (header == kStop) {
        co_await t.wait_stored();
        co_return;
      }
      tile = TileHeader::of(header);
      in_tile = halves_of_group(std::max(tile.halves, kConsumers), group) * half_rows(layer.s);
      const RowOfGroup at(layer.s, group, chunk);
      t.start_store({layer.tile_cells(c.d, tile.row_block + at.block, tile.n_tile) + at.row},
                    {chunks.cell()}, c.round.stamp, c.rank);
      t.commit_group();
      if (chunk == in_tile - 1 && layer.has(Bug::lent_stage_returned_early)) {
        chunks.return_stage();
      }
      if (chunks.hands_back()) {
        co_await t.wait_read(chunks.unread() + (layer.has(Bug::chunk_returned_early) ? 1 : 0));
        chunks.hand_back(chunks.unread());
      }
      chunks.advance();
    }
    co_await t.wait_read();
    chunks.hand_back_rest();
    if (!layer.has(Bug::lent_stage_returned_early)) {
      chunks.return_stage();
    }
    if (c.signal >= 0) {
      co_await t.wait_stored();
      if (!layer.has(Bug::stored_proxy_fence_missing)) {
        t.fence_proxy_async();
      }
      bool signals = false;
      co_await is_to_signal(t, c, tile, whole_tiles, signals);
      if (signals) {
        co_await signal_tile(t, c, tile);
      }
    }
  }
}

}  // namespace fusescope::protocol
