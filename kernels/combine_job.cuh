#pragma once
// Combine jobs: the weighted sum of a token's K partial rows, pushed to the token's source rank.
//
// A job is run by one warpgroup. The three warpgroups of a block take jobs independently, so that one
// job's wait or push overlaps another's sum. A warpgroup has two row buffers in shared memory: while
// the copy engine drains one, the next job fills the other; the push of a job is completed and
// counted just before the next job's push, or at the end.

#include <cstdint>

#include "kernels/bulk_copy.cuh"
#include "kernels/gemm_combine_push.hpp"
#include "kernels/row_math.cuh"

namespace fusescope::kernels {

inline constexpr int kJobThreads = 128;
inline constexpr int kJobBuffers = 2;

// Token of the job at this position of the job order.
__device__ inline int job_token(const LayerArgs& layer, int position) {
  return layer.job_order == nullptr ? position : layer.job_order[position];
}

// One warpgroup's way through the jobs. Every thread of the warpgroup calls the same methods.
class JobRunner {
 public:
  // `barrier`: a named barrier of this warpgroup's own. `rows`: kJobBuffers rows; `mailbox`: a word.
  __device__ JobRunner(const LayerArgs& layer, const CombineArgs& combine, unsigned char* rows,
                       std::int32_t* mailbox, unsigned barrier)
      : layer_(layer), combine_(combine), rows_(rows), mailbox_(mailbox), barrier_(barrier) {}

  // Claims jobs from the dispenser until there are none left.
  __device__ void run_dispenser() {
    for (;;) {
      const int job = claim();
      if (job >= layer_.tokens || !run(job_token(layer_, job)))
        break;
    }
    finish();
  }

  // False: some wait was given up.
  __device__ bool run(int token) {
    if (!wait_ready(token))
      return false;
    sum(token);
    push(token);
    return true;
  }

  // Completes and counts the last push.
  __device__ void finish() {
    if (leader() && pending_ >= 0)
      complete_push();
  }

 private:
  __device__ static int thread() { return static_cast<int>(threadIdx.x) % kJobThreads; }
  __device__ static bool leader() { return thread() == 0; }
  __device__ void meet() const { __barrier_sync_count(barrier_, kJobThreads); }

  __device__ int claim() const {
    if (leader()) {
      *mailbox_ = static_cast<std::int32_t>(GpuAtomic<std::uint32_t>(layer_.counters->dispenser)
                                                .fetch_add(1, cuda::memory_order_relaxed));
    }
    meet();
    const int job = *mailbox_;
    // Orders every thread's read of the mailbox before the next write to it (here, or in wait_ready).
    meet();
    return job;
  }

  // The first K threads wait for one row block each.
  __device__ bool wait_ready(int token) const {
    if (leader())
      *mailbox_ = 1;
    meet();
    const std::int32_t* slots = layer_.slots + static_cast<std::int64_t>(token) * layer_.topk;
    for (int k = thread(); k < layer_.topk; k += kJobThreads) {
      const int row_block = slots[k] / 128;
      // Acquires what the tile's storer released: orders the tile's stores before the loads of the
      // sum, in this thread, and through the barrier below in the others.
      if (!wait_for_counter(layer_.guard, Wait::ready, row_block, layer_.done[row_block],
                            combine_.done_at))
        *mailbox_ = 0;
    }
    meet();
    const bool ready = *mailbox_ != 0;
    meet();
    return ready;
  }

  __device__ void sum(int token) {
    if (layer_.delays.job > 0)
      spin_until(now_ns() + layer_.delays.job);
    auto* row = reinterpret_cast<uint4*>(buffer());
    for (int unit = thread(); unit < layer_.hidden / 8; unit += kJobThreads)
      row[unit] = combine_unit(layer_, token, unit);
    // Orders this thread's stores to the row buffer before the bulk copy that reads it: the proxy
    // fence here, in each writing thread, then the barrier.
    ptx::fence_proxy_async(ptx::space_shared);
    // Also orders the previous push's reads of the other buffer, whose completion the leader awaits
    // below, before the writes of the job after this one: they come after the next barrier.
    meet();
  }

  __device__ void push(int token) {
    if (leader()) {
      if (pending_ >= 0)
        complete_push();
      if (layer_.delays.push > 0)
        spin_until(now_ns() + layer_.delays.push);
      const int to = layer_.source_rank(token);
      const int t = token - to * layer_.tokens_per_rank;
      if (layer_.ns_per_byte > 0 && to != layer_.rank)
        through_ = book_link(layer_.counters->push_free_ns, layer_.row_bytes(), layer_.ns_per_byte);
      start_store(
          layer_.shared[to].staging +
              (static_cast<std::int64_t>(layer_.rank) * layer_.tokens_per_rank + t) * layer_.hidden,
          buffer(), layer_.row_bytes());
      ptx::cp_async_bulk_commit_group();
      pending_ = token;
    }
    current_ ^= 1;
  }

  // The push is complete at the receiver; count it, and if it was the chunk's last, raise the
  // watermark. Every count is local to this GPU; the watermark has one writer: the elected job's
  // leader.
  __device__ void complete_push() {
    const int token = pending_;
    pending_ = -1;
    wait_stored();
    if (through_ > 0)
      spin_until(through_);
    through_ = 0;
    if (token == layer_.faults.lost_push)
      return;
    const int to = layer_.source_rank(token);
    const int t = token - to * layer_.tokens_per_rank;
    const int chunks = combine_.watermark_chunks;
    const int chunk = layer_.chunk_of(t, chunks);
    const auto size = static_cast<std::uint32_t>(layer_.chunk_begin(chunk + 1, chunks) -
                                                 layer_.chunk_begin(chunk, chunks));
    // Orders this row, written to the receiver's memory, before the elected job's release of the
    // watermark: release here, acquire there, both on the count.
    __threadfence_system();
    const std::uint32_t before = GpuAtomic<std::uint32_t>(layer_.counters->pushed[to][chunk])
                                     .fetch_add(1, cuda::memory_order_acq_rel);
    if (before + 1 != size)
      return;
    if (layer_.delays.watermark > 0)
      spin_until(now_ns() + layer_.delays.watermark);
    // Orders all rows of the chunk, of this and of the other jobs, before the receiver's acquire of
    // the watermark.
    __threadfence_system();
    raise_flag(layer_.shared[to].flags->watermark[layer_.rank][chunk], layer_.counters->iteration);
  }

  __device__ unsigned char* buffer() const {
    return rows_ + static_cast<std::size_t>(current_) * layer_.row_bytes();
  }

  const LayerArgs& layer_;
  const CombineArgs& combine_;
  unsigned char* rows_;
  std::int32_t* mailbox_;
  unsigned barrier_;
  int current_ = 0;
  int pending_ = -1;           // leader: token of the push in flight
  std::uint64_t through_ = 0;  // leader: when the emulated link has carried it; 0 = not paced
};

}  // namespace fusescope::kernels
