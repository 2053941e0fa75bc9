// kernels/gemm_reduce_scatter.cuh: the slot order, and the push role.
#include <algorithm>

#include "protocol/layer/gemm_reduce_scatter.hpp"

namespace fusescope::protocol {

// --- slot order: kernels/gemm_reduce_scatter.hpp -----------------------------------------------------

namespace {

bool by_rank(const Scenario& s) {
  return s.config.slot_order == SlotOrder::by_token;
}
int remote_segment(const Scenario& s, int rank, int i) {
  return by_rank(s) && i >= rank ? i + 1 : i;
}

}  // namespace

int segment_of(const Scenario& s, int rank, int destination) {
  return by_rank(s) ? destination : (destination - rank - 1 + s.ranks) % s.ranks;
}
int destination_of(const Scenario& s, int rank, int segment) {
  return by_rank(s) ? segment : (rank + 1 + segment) % s.ranks;
}
CellId partial_cell(const Layer& layer, int rank, int slot, int n) {
  return layer.tile_cells(layer.places[rank].partial, slot / layer.s.row_block, n) +
         slot % layer.s.row_block;
}

// --- the push role ---------------------------------------------------------------------------------

namespace {

struct Push {
  int to, t, rows, slot;
};

Push push_at(const Scenario& s, int rank, int number) {
  const int per_rank = (s.tokens_per_rank + s.push_rows - 1) / s.push_rows;
  const int segment = remote_segment(s, rank, number / per_rank);
  Push p{};
  p.to = destination_of(s, rank, segment);
  p.t = number % per_rank * s.push_rows;
  p.rows = std::min(s.push_rows, s.tokens_per_rank - p.t);
  p.slot = segment * s.tokens_per_rank + p.t;
  return p;
}

bool loses(const PushRole& r, const Thread& t, Fault signal, const Push& p) {
  return p.to == 0 && p.t == 0 && r.layer.loses(signal, t.rank(), r.round);
}

// PushRole::count and count_rows.
Task count(Thread& t, PushRole r, Push p) {
  Layer& layer = r.layer;
  const Scenario& s = layer.s;
  if (loses(r, t, Fault::lost_push, p)) {
    co_return;
  }
  const bool relaxed = layer.has(Bug::push_count_relaxed);
  if (!relaxed && !layer.has(Bug::releasing_fences_missing)) {
    t.fence(Scope::system);
  }
  const int last = layer.chunk_of(p.t + p.rows - 1);
  for (int chunk = layer.chunk_of(p.t); chunk <= last; ++chunk) {
    const int begin = layer.chunk_begin(chunk);
    const int end = layer.chunk_begin(chunk + 1);
    const int rows = std::min(end, p.t + p.rows) - std::max(begin, p.t);
    if (rows <= 0) {
      continue;
    }
    int size = end - begin;
    if (layer.has(Bug::chunk_size_rounded_up)) {
      size = (s.tokens_per_rank + s.config.watermark_chunks - 1) / s.config.watermark_chunks;
    }
    const std::uint64_t before =
        co_await t.fetch_add(layer.pushed(t.rank(), p.to, chunk), static_cast<std::uint64_t>(rows),
                             relaxed ? Order::relaxed : Order::acq_rel, Scope::gpu);
    const int counted = static_cast<int>(before) + rows;
    bool elected = counted == size;
    if (layer.has(Bug::election_one_late)) {
      elected = counted == size + 1;
    } else if (layer.has(Bug::election_one_early)) {
      elected = counted == size - 1 || size == 1;
    } else if (layer.has(Bug::two_elected)) {
      elected = counted >= size - 1;
    }
    if (!elected) {
      continue;
    }
    layer.elected(t, p.to, chunk);
    if (!layer.has(Bug::releasing_fences_missing)) {
      t.fence(Scope::system);
    }
    if (p.to == 0 && layer.loses(Fault::lost_watermark, t.rank(), r.round)) {
      co_return;
    }
    const std::uint64_t iteration = t.read(layer.places[t.rank()].iteration, kAnyStamp);
    co_await t.store(layer.watermark(p.to, t.rank(), chunk), iteration, Order::release,
                     layer.has(Bug::watermark_gpu_scope) ? Scope::gpu : Scope::system);
  }
}

}  // namespace

// PushRole::run_pusher. One thread with a buffer of its own.
Task run_pusher(Thread& t, PushRole r) {
  Layer& layer = r.layer;
  const Scenario& s = layer.s;
  const RankPlaces& mine = layer.places[t.rank()];
  const MbarrierId landed = r.block.landed + r.pusher;
  t.init_mbarrier(landed, 1, true);
  t.fence_proxy_async();
  const std::uint64_t earlier = co_await layer.aborted(t);
  bool stopped = earlier != 0;

  const int per_rank = (s.tokens_per_rank + s.push_rows - 1) / s.push_rows;
  const int remote_pushes = (s.ranks - 1) * per_rank;
  const auto pushes = static_cast<std::uint64_t>(remote_pushes);
  for (std::uint32_t parity = 0; !stopped; parity ^= layer.has(Bug::pull_parity_kept) ? 0 : 1) {
    // claim
    std::uint64_t number = 0;
    if (layer.has(Bug::claim_not_atomic)) {
      number = co_await t.load(mine.dispenser, Order::relaxed, Scope::gpu);
      co_await t.store(mine.dispenser, number + 1, Order::relaxed, Scope::gpu);
    } else {
      number = co_await t.fetch_add(mine.dispenser, 1, Order::relaxed, Scope::gpu);
    }
    if (number >= pushes) {
      break;
    }
    const Push p = push_at(s, t.rank(), static_cast<int>(number));
    layer.claimed(t, p.to * s.tokens_per_rank + p.t);
    // wait_ready
    for (int b = p.slot / s.row_block; !stopped && b <= (p.slot + p.rows - 1) / s.row_block; ++b) {
      const bool reached = co_await t.wait_at_least(
          mine.done + b, static_cast<std::uint64_t>(s.n_tiles()), Order::acquire, Scope::gpu,
          !layer.has(Bug::ready_wait_unguarded));
      stopped = !reached;
    }
    if (stopped) {
      break;
    }
    if (!layer.has(Bug::gate_proxy_fence_missing)) {
      t.fence_proxy_async();
    }
    // fetch
    const auto buffer = [&](int row) {
      return layer.smem_row(r.block, r.pusher * s.push_rows + row).first;
    };
    const bool started = !loses(r, t, Fault::lost_pull, p);
    if (started) {
      t.arrive_expecting(landed, p.rows * s.n_tiles());
      for (int row = 0; row < p.rows; ++row) {
        for (int n = 0; n < s.n_tiles(); ++n) {
          t.start_load({buffer(row) + n}, {partial_cell(layer, t.rank(), p.slot + row, n)}, 1,
                       r.round.stamp, landed, t.rank());
        }
      }
    }
    const bool fetched = co_await t.wait_phase(landed, parity, true);
    if (!fetched) {
      if (started && !layer.has(Bug::pull_not_drained)) {
        co_await t.wait_phase(landed, parity);  // whatever the abort word says
      }
      break;
    }
    // send
    const int plane = layer.has(Bug::plane_index_wrong) ? p.to : t.rank();
    for (int row = 0; row < p.rows; ++row) {
      t.start_store({layer.staging_cell(p.to, plane, p.t + row)}, {buffer(row), s.n_tiles()},
                    r.round.stamp, p.to);
    }
    t.commit_group();
    if (layer.has(Bug::watermark_before_copy)) {
      co_await count(t, r, p);
    }
    if (layer.has(Bug::push_counted_after_read)) {
      co_await t.wait_read();
    } else {
      co_await t.wait_stored();
    }
    if (!layer.has(Bug::stored_proxy_fence_missing)) {
      t.fence_proxy_async();
    }
    if (!layer.has(Bug::watermark_before_copy)) {
      co_await count(t, r, p);
    }
  }
}

}  // namespace fusescope::protocol
