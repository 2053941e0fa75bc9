// kernels/combine_job.cuh. A warpgroup is two threads here: the front (its first warp), and the rest with
// the pusher among them.
#include "protocol/layer/layer.hpp"

namespace fusescope::protocol {
namespace {

constexpr std::uint64_t kNone = ~0ull;
constexpr int kFrontThreads = 32;

BarrierId barrier_of(const JobGroup& j) {
  const int group = j.layer.has(Bug::job_barrier_shared) ? 0 : j.group;
  return j.block.named + kFirstJobBarrier + group;
}

std::uint64_t job_token(const Thread& t, const JobGroup& j, std::uint64_t position) {
  const Layer& layer = j.layer;
  if (layer.s.config.job_order == JobOrder::by_token) {
    return position;
  }
  t.read(layer.places[t.rank()].job_order, j.round.stamp);
  return static_cast<std::uint64_t>(j.round.tables[t.rank()].job_order[position]);
}

// combine_row, one part of it: [first, first + count) of the row buffer's cells.
void sum(const Thread& t, const JobGroup& j, int token, int buffer, int first, int count) {
  const Layer& layer = j.layer;
  const RankPlaces& mine = layer.places[t.rank()];
  t.read(mine.slots, j.round.stamp);
  t.read(mine.weights + layer.source_rank(token), j.round.stamp);
  std::uint64_t value = 0;
  for (int k = 0; k < layer.s.topk; ++k) {
    const int slot = j.round.slot(t.rank(), token, k);
    for (int n = 0; n < layer.s.n_tiles(); ++n) {
      const CellId cell =
          layer.tile_cells(mine.partial, slot / layer.s.row_block, n) + slot % layer.s.row_block;
      value += j.round.hit_weight(token, k) * static_cast<std::uint64_t>(n + 1) *
               t.read(cell, j.round.stamp);
    }
  }
  const Span row = layer.smem_row(j.block, j.group * kJobBuffers + buffer);
  for (int i = first; i < first + count; ++i) {
    t.write(row.first + i, value, j.round.stamp);
  }
}

// JobRunner::count_push.
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

Task job_front(Thread& t, JobGroup j) {
  Layer& layer = j.layer;
  const RankPlaces& mine = layer.places[t.rank()];
  const CellId mailbox = j.block.mailboxes + j.group;
  const auto jobs = static_cast<std::uint64_t>(layer.s.tokens());
  const bool guarded = !layer.has(Bug::ready_wait_unguarded);
  const std::uint64_t stopped = co_await layer.aborted(t);
  int buffer = 0;
  bool again = true;
  std::uint64_t job = static_cast<std::uint64_t>(j.one_job);
  while (again) {
    // claim
    if (j.one_job < 0) {
      if (layer.has(Bug::claim_not_atomic)) {
        job = co_await t.load(mine.dispenser, Order::relaxed, Scope::gpu);
        co_await t.store(mine.dispenser, job + 1, Order::relaxed, Scope::gpu);
      } else {
        job = co_await t.fetch_add(mine.dispenser, 1, Order::relaxed, Scope::gpu);
      }
    }
    again = j.one_job < 0;
    // next_ready
    std::uint64_t token = job < jobs ? job_token(t, j, job) : kNone;
    if (token != kNone) {
      layer.claimed(t, static_cast<int>(token));
      bool ready = stopped == 0;
      t.read(mine.slots, j.round.stamp);
      for (int k = 0; ready && k < layer.s.topk; ++k) {
        const int slot = j.round.slot(t.rank(), static_cast<int>(token), k);
        const bool reached = co_await t.wait_at_least(mine.done + slot / layer.s.row_block,
                                                      static_cast<std::uint64_t>(layer.s.n_tiles()),
                                                      Order::acquire, Scope::gpu, guarded);
        ready = reached;
      }
      token = ready ? token : kNone;
    }
    t.write(mailbox, token, j.round.stamp);
    co_await t.meet(barrier_of(j), kFrontThreads, kJobThreads);
    if (t.read(mailbox, j.round.stamp) == kNone) {
      co_return;
    }
    const int half = layer.s.row_block / 2;
    sum(t, j, static_cast<int>(token), buffer, 0, half);
    if (!layer.has(Bug::job_proxy_fence_missing)) {
      t.fence_proxy_async();
    }
    co_await t.meet(barrier_of(j), kFrontThreads, kJobThreads);
    if (!layer.has(Bug::job_buffer_single)) {
      buffer ^= 1;
    }
  }
}

Task job_back(Thread& t, JobGroup j) {
  Layer& layer = j.layer;
  const CellId mailbox = j.block.mailboxes + j.group;
  const int half = layer.s.row_block / 2;
  int buffer = 0;
  int pending = -1;
  bool again = true;
  while (again) {
    again = j.one_job < 0;
    co_await t.meet(barrier_of(j), kJobThreads - kFrontThreads, kJobThreads);
    const std::uint64_t given = t.read(mailbox, j.round.stamp);
    if (given == kNone) {
      break;
    }
    int token = static_cast<int>(given);
    sum(t, j, token, buffer, half, layer.s.row_block - half);
    if (!layer.has(Bug::job_proxy_fence_missing)) {
      t.fence_proxy_async();
    }
    co_await t.meet(barrier_of(j), kJobThreads - kFrontThreads, kJobThreads);
    if (layer.has(Bug::mailbox_read_late)) {
      token = static_cast<int>(t.read(mailbox, j.round.stamp));
    }
    // push
    const int to = layer.source_rank(token);
    const int plane = layer.has(Bug::plane_index_wrong) ? to : t.rank();
    t.start_store({layer.staging_cell(to, plane, token - to * layer.s.tokens_per_rank), 1},
                  layer.smem_row(j.block, j.group * kJobBuffers + buffer), j.round.stamp, to);
    t.commit_group();
    if (layer.has(Bug::watermark_before_copy)) {
      co_await count_push(t, j, token);
    }
    if (pending >= 0) {
      if (layer.has(Bug::push_counted_after_read)) {
        co_await t.wait_read(1);
      } else {
        co_await t.wait_stored(layer.has(Bug::push_wait_one_too_few) ? 2 : 1);
      }
      t.fence_proxy_async();
      if (!layer.has(Bug::watermark_before_copy)) {
        co_await count_push(t, j, pending);
      }
    }
    pending = token;
    if (!layer.has(Bug::job_buffer_single)) {
      buffer ^= 1;
    }
  }
  // finish
  if (pending >= 0) {
    if (layer.has(Bug::push_counted_after_read)) {
      co_await t.wait_read();
    } else {
      co_await t.wait_stored();
    }
    t.fence_proxy_async();
    if (!layer.has(Bug::watermark_before_copy)) {
      co_await count_push(t, j, pending);
    }
  }
}

}  // namespace fusescope::protocol
