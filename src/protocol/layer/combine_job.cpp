// kernels/combine_job.cuh and job_memory.cuh. Each warp of a warpgroup is one thread here: the front, two
// that sum, the pusher.
#include "protocol/layer/layer.hpp"

namespace fusescope::protocol {
namespace {

constexpr int kNoToken = -1;
constexpr int kWarpThreads = 32;

// The constructor of JobRunner, and JobMemory::init.
Task begin_part(Thread& t, JobGroup j, bool is_front) {
  const Layer& layer = j.layer;
  const JobPlaces& p = j.places();
  if (is_front) {
    for (int i = 0; i < kJobPieces; ++i) {
      t.init_mbarrier(p.full + i, 1, true);
      t.init_mbarrier(p.empty + i, layer.has(Bug::empty_counts_one_warp) ? 1 : kSummingWarps,
                      false);
    }
    for (int i = 0; i < kJobRows; ++i) {
      t.init_mbarrier(p.summed + i, layer.has(Bug::summed_counts_one_warp) ? 1 : kSummingWarps,
                      false);
      t.init_mbarrier(p.drained + i, 1, false);
    }
    t.write(p.control, 0, j.round.stamp);
  }
  if (!layer.has(Bug::job_init_unordered)) {
    const int barrier = kFirstJobBarrier + (layer.has(Bug::job_barrier_shared) ? 0 : j.group);
    co_await t.meet(j.block.named + barrier, kWarpThreads, kJobThreads);
  }
  t.read(p.control, j.round.stamp);
}

// PiecePosition::advance.
void advance_piece(const JobGroup& j, RingCursor& ring) {
  ring.advance();
  if (j.layer.has(Bug::piece_parity_kept)) {
    ring.parity = 0;
  }
}

CellId piece_cell(const JobGroup& j, int slot, int k) {
  return j.places().pieces + slot * (j.layer.s.topk + 1) + k;
}
CellId piece_weights(const JobGroup& j, int slot) {
  return piece_cell(j, slot, j.layer.s.topk);
}
Span row_cells(const JobGroup& j, int slot) {
  const int columns = job_columns(j.layer.s);
  const int buffer = j.layer.has(Bug::job_buffer_single) ? 0 : slot;
  return {j.places().rows + buffer * columns, columns};
}

void write_token(const Thread& t, const JobGroup& j, CellId cell, int token) {
  t.write(cell, static_cast<std::uint64_t>(token), j.round.stamp);
}
// What is no token is a finding already, and ends the jobs.
int read_token(const Thread& t, const JobGroup& j, CellId cell) {
  const std::uint64_t read = t.read(cell, j.round.stamp);
  return read < static_cast<std::uint64_t>(j.layer.s.tokens()) ? static_cast<int>(read) : kNoToken;
}

// --- front -----------------------------------------------------------------------------------------

// JobRunner::claim, or block per job's one position; and token_at. In: whether it is the first call.
Task next_token(Thread& t, JobGroup j, bool is_first, int& token) {
  Layer& layer = j.layer;
  const RankPlaces& mine = layer.places[t.rank()];
  const auto jobs = static_cast<std::uint64_t>(layer.s.tokens());
  std::uint64_t position = jobs;
  if (j.one_job >= 0) {
    position = is_first ? static_cast<std::uint64_t>(j.one_job) : jobs;
  } else if (layer.has(Bug::claim_not_atomic)) {
    position = co_await t.load(mine.dispenser, Order::relaxed, Scope::gpu);
    co_await t.store(mine.dispenser, position + 1, Order::relaxed, Scope::gpu);
  } else {
    position = co_await t.fetch_add(mine.dispenser, 1, Order::relaxed, Scope::gpu);
  }
  if (position >= jobs) {
    token = kNoToken;
    co_return;
  }
  token = static_cast<int>(position);
  if (layer.s.config.job_order != JobOrder::by_token) {
    t.read(mine.job_order, j.round.stamp);
    token = j.round.tables[t.rank()].job_order[position];
  }
  layer.claimed(t, token);
}

Task wait_ready(Thread& t, JobGroup j, int token, bool& ready) {
  Layer& layer = j.layer;
  const RankPlaces& mine = layer.places[t.rank()];
  t.read(mine.slots, j.round.stamp);
  ready = true;
  for (int k = 0; ready && k < layer.s.topk; ++k) {
    const int slot = j.round.slot(t.rank(), token, k);
    ready = co_await t.wait_at_least(mine.done + slot / layer.s.row_block,
                                     static_cast<std::uint64_t>(layer.s.n_tiles()), Order::acquire,
                                     Scope::gpu, !layer.has(Bug::ready_wait_unguarded));
  }
  if (!layer.has(Bug::ready_proxy_fence_missing)) {
    t.fence_proxy_async();
  }
}

Task fetch(Thread& t, JobGroup j, int token, RingCursor& ring) {
  const Layer& layer = j.layer;
  const RankPlaces& mine = layer.places[t.rank()];
  const JobPlaces& p = j.places();
  for (int n = 0; n < layer.s.n_tiles(); ++n, advance_piece(j, ring)) {
    const MbarrierId full = p.full + ring.slot;
    if (!layer.has(Bug::piece_refilled_early)) {
      co_await t.wait_phase(p.empty + ring.slot, ring.parity ^ 1);
    }
    t.read(mine.weights + token, j.round.stamp);
    write_token(t, j, piece_weights(j, ring.slot), token);  // whose weights they are
    const bool token_first = !layer.has(Bug::piece_token_unreleased);
    if (token_first) {
      write_token(t, j, p.piece_tokens + ring.slot, token);
    }
    t.arrive_expecting(full, layer.has(Bug::piece_expects_one_row) ? 1 : layer.s.topk);
    if (!token_first) {
      write_token(t, j, p.piece_tokens + ring.slot, token);
    }
    for (int k = 0; k < layer.s.topk; ++k) {
      const int slot = j.round.slot(t.rank(), token, k);
      const CellId row =
          layer.tile_cells(mine.partial, slot / layer.s.row_block, n) + slot % layer.s.row_block;
      t.start_load({piece_cell(j, ring.slot, k)}, {row}, 1, j.round.stamp, full, t.rank());
    }
  }
}

// --- summing warps ---------------------------------------------------------------------------------

Task sum(Thread& t, JobGroup j, int warp, CellId row, RingCursor& ring) {
  const Layer& layer = j.layer;
  const JobPlaces& p = j.places();
  for (int n = 0; n < layer.s.n_tiles(); ++n, advance_piece(j, ring)) {
    if (n == 0 || !layer.has(Bug::piece_summed_early)) {
      co_await t.wait_phase(p.full + ring.slot, ring.parity);
    }
    if (layer.has(Bug::piece_freed_early)) {
      t.arrive(p.empty + ring.slot);
    }
    const int token = read_token(t, j, piece_weights(j, ring.slot));
    const int column = n * kSummingWarps + warp;
    std::uint64_t value = 0;
    for (int k = 0; k < layer.s.topk; ++k) {
      const std::uint64_t weight = token == kNoToken ? 0 : j.round.hit_weight(token, k);
      value += Round::weighted(t.read(piece_cell(j, ring.slot, k), j.round.stamp), weight, column);
    }
    t.write(row + column, value, j.round.stamp);
    if (!layer.has(Bug::piece_freed_early)) {
      t.arrive(p.empty + ring.slot);
    }
  }
}

// --- pusher ----------------------------------------------------------------------------------------

Task wait_pushed(Thread& t, JobGroup j, int pending) {
  const Layer& layer = j.layer;
  if (layer.has(Bug::push_counted_after_read)) {
    co_await t.wait_read(pending);
  } else {
    co_await t.wait_stored(pending + (layer.has(Bug::push_wait_one_too_few) ? 1 : 0));
  }
  if (!layer.has(Bug::stored_proxy_fence_missing) && !layer.has(Bug::pushed_proxy_fence_missing)) {
    t.fence_proxy_async();
  }
}

Task count_push(Thread& t, JobGroup j, int token) {
  Layer& layer = j.layer;
  if (token == 0 && layer.loses(Fault::lost_push, t.rank(), j.round)) {
    co_return;
  }
  const int to = layer.source_rank(token);
  const int chunk = layer.chunk_of(token - to * layer.s.tokens_per_rank);
  int size = layer.chunk_begin(chunk + 1) - layer.chunk_begin(chunk);
  if (layer.has(Bug::chunk_size_rounded_up)) {
    size = (layer.s.tokens_per_rank + layer.s.config.watermark_chunks - 1) /
           layer.s.config.watermark_chunks;
  }
  const bool relaxed = layer.has(Bug::push_count_relaxed);
  if (!relaxed && !layer.has(Bug::releasing_fences_missing)) {
    t.fence(Scope::system);
  }
  const std::uint64_t before = co_await t.fetch_add(
      layer.pushed(t.rank(), to, chunk), 1, relaxed ? Order::relaxed : Order::acq_rel, Scope::gpu);
  const int counted = static_cast<int>(before) + 1;
  bool elected = counted == size;
  if (layer.has(Bug::election_one_late)) {
    elected = counted == size + 1;
  } else if (layer.has(Bug::election_one_early)) {
    elected = counted == size - 1 || size == 1;
  } else if (layer.has(Bug::two_elected)) {
    elected = counted >= size - 1;
  }
  if (!elected) {
    co_return;
  }
  layer.elected(t, to, chunk);
  if (!layer.has(Bug::releasing_fences_missing)) {
    t.fence(Scope::system);
  }
  if (to == 0 && layer.loses(Fault::lost_watermark, t.rank(), j.round)) {
    co_return;
  }
  const std::uint64_t iteration = t.read(layer.places[t.rank()].iteration, kAnyStamp);
  co_await t.store(layer.watermark(to, t.rank(), chunk), iteration, Order::release,
                   layer.has(Bug::watermark_gpu_scope) ? Scope::gpu : Scope::system);
}

}  // namespace

Task fetch_jobs(Thread& t, JobGroup j) {
  const Layer& layer = j.layer;
  const JobPlaces& p = j.places();
  co_await begin_part(t, j, true);
  const std::uint64_t earlier = co_await layer.aborted(t);
  bool stopped = earlier != 0;
  RingCursor ring{kJobPieces};
  int token = kNoToken;
  co_await next_token(t, j, true, token);
  while (token != kNoToken && !stopped) {
    bool ready = false;
    co_await wait_ready(t, j, token, ready);
    stopped = !ready;
    if (stopped) {
      break;
    }
    int following = kNoToken;
    co_await next_token(t, j, false, following);
    co_await fetch(t, j, token, ring);
    token = following;
  }
  if (stopped && layer.has(Bug::abort_without_stop)) {
    co_return;
  }
  if (!layer.has(Bug::stop_overtakes_pieces)) {
    co_await t.wait_phase(p.empty + ring.slot, ring.parity ^ 1);
  }
  write_token(t, j, p.piece_tokens + ring.slot, kNoToken);
  t.arrive(p.full + ring.slot);
}

Task sum_jobs(Thread& t, JobGroup j, int warp) {
  const Layer& layer = j.layer;
  const JobPlaces& p = j.places();
  co_await begin_part(t, j, false);
  RingCursor ring{kJobPieces};
  for (RingCursor row{kJobRows};; row.advance()) {
    co_await t.wait_phase(p.full + ring.slot, ring.parity);
    const int token = read_token(t, j, p.piece_tokens + ring.slot);
    if (token == kNoToken && layer.has(Bug::stop_not_handed_on)) {
      co_return;
    }
    if (!layer.has(Bug::row_rewritten_early)) {
      co_await t.wait_phase(p.drained + row.slot, row.parity ^ 1);
    }
    if (token != kNoToken) {
      co_await sum(t, j, warp, row_cells(j, row.slot).first, ring);
      const bool fences = !layer.has(Bug::job_proxy_fence_missing) &&
                          (warp == 0 || !layer.has(Bug::job_proxy_fence_by_one));
      if (fences) {
        t.fence_proxy_async();
      }
    }
    if (warp == 0) {
      write_token(t, j, p.row_tokens + row.slot, token);
    }
    t.arrive(p.summed + row.slot);
    if (token == kNoToken) {
      co_return;
    }
  }
}

Task push_rows(Thread& t, JobGroup j) {
  Layer& layer = j.layer;
  const JobPlaces& p = j.places();
  co_await begin_part(t, j, false);
  const bool counts_late = !layer.has(Bug::watermark_before_copy);
  int pending = kNoToken;
  for (RingCursor row{kJobRows};; row.advance()) {
    co_await t.wait_phase(p.summed + row.slot, row.parity);
    int token = read_token(t, j, p.row_tokens + row.slot);
    if (token == kNoToken) {
      break;
    }
    // start_push
    const int to = layer.source_rank(token);
    const int plane = layer.has(Bug::plane_index_wrong) ? to : t.rank();
    t.start_store({layer.staging_cell(to, plane, token - to * layer.s.tokens_per_rank)},
                  row_cells(j, row.slot), j.round.stamp, to);
    t.commit_group();
    if (!counts_late) {
      co_await count_push(t, j, token);
    }
    if (layer.has(Bug::drained_before_read)) {
      t.arrive(p.drained + row.slot);
      co_await t.wait_read();
    } else {
      co_await t.wait_read();
      t.arrive(p.drained + row.slot);
    }
    if (layer.has(Bug::row_token_read_late)) {
      token = read_token(t, j, p.row_tokens + row.slot);
    }
    if (pending != kNoToken) {
      co_await wait_pushed(t, j, 1);
      if (counts_late) {
        co_await count_push(t, j, layer.has(Bug::push_counts_the_next) ? token : pending);
      }
    }
    pending = token;
  }
  if (pending != kNoToken) {
    co_await wait_pushed(t, j, 0);
    if (counts_late && !layer.has(Bug::last_push_uncounted)) {
      co_await count_push(t, j, pending);
    }
  }
}

}  // namespace fusescope::protocol
