#pragma once
// Combine jobs: the weighted sum of a token's K partial rows, pushed to the token's source rank.
//
// A job is run by one warpgroup. The three warpgroups of a block take jobs independently, so that one
// job's wait or push overlaps another's sum. A warpgroup has two row buffers in shared memory: while
// the copy engine drains one, the next job fills the other; the push of a job is completed and
// counted just after the next job's push has started, or at the end.

#include <cstdint>

#include "kernels/bulk_copy.cuh"
#include "kernels/gemm_combine_push.hpp"
#include "kernels/recording.cuh"
#include "kernels/row_math.cuh"

namespace fusescope::kernels {

inline constexpr int kJobThreads = 128;
inline constexpr int kJobBuffers = 2;

// Token of the job at this position of the job order.
__device__ inline int job_token(const LayerArgs& layer, int position) {
  return layer.job_order == nullptr ? position : layer.job_order[position];
}

// One warpgroup's way through the jobs. Every thread of the warpgroup calls the same methods. Three
// parts of it run side by side: the front (warp 0) claims the next job and waits until its row blocks
// are ready, the pusher (a thread of the last warp) completes and counts the push before, and all
// threads sum.
//
// A record is the front's first thread's or the pusher's, each with a writer of its own.
template <class Records>
class JobRunner {
 public:
  // What the records call it: a warpgroup of a block of a family.
  struct Place {
    Family family;
    int block;
    int group;
  };

  // `barrier`: a named barrier of this warpgroup's own. `rows`: kJobBuffers rows; `mailbox`: a word.
  __device__ JobRunner(const LayerArgs& layer, const CombineArgs& combine, unsigned char* rows,
                       std::int32_t* mailbox, unsigned barrier, const Place& place)
      : layer_(layer),
        combine_(combine),
        rows_(rows),
        mailbox_(mailbox),
        barrier_(barrier),
        stopped_(aborted(layer.guard)),
        writer_(layer.records, place.family, place.block,
                place.group * timeline::kJobWriters +
                    (is_pusher() ? timeline::kPusher : timeline::kFront)) {}

  // Claims jobs from the dispenser until there are none left.
  __device__ void run_dispenser() {
    int job = claim();
    for (;;) {
      const int token = next_ready(job < layer_.tokens ? job_token(layer_, job) : kNone);
      if (token == kNone)
        break;
      job = claim();  // on its way while this job is summed
      sum(token);
      push(token);
    }
    finish();
  }

  __device__ void run_one(int token) {
    if (next_ready(token) != kNone) {
      sum(token);
      push(token);
    }
    finish();
  }

 private:
  static constexpr int kNone = -1;

  __device__ static int thread() { return static_cast<int>(threadIdx.x) % kJobThreads; }
  __device__ static bool is_front() { return thread() < 32; }
  __device__ static bool is_pusher() { return thread() == kJobThreads - 32; }
  __device__ void meet() const { __barrier_sync_count(barrier_, kJobThreads); }

  // Front: the next position of the job order, the same in all lanes.
  __device__ int claim() {
    int job = 0;
    if (thread() == 0) {
      writer_.record(Point::claim_begin);
      job = static_cast<int>(GpuAtomic<std::uint32_t>(layer_.counters->dispenser)
                                 .fetch_add(1, cuda::memory_order_relaxed));
    }
    job = is_front() ? __shfl_sync(~0u, job, 0) : 0;
    if (thread() == 0)
      writer_.record(Point::claimed, job);
    return job;
  }

  // The front's token, in all threads, once its row blocks are ready; kNone if there is none, or if a
  // wait was given up.
  __device__ int next_ready(int token) {
    if (is_front()) {
      const bool ready = token != kNone && wait_ready(token);
      if (thread() == 0)
        *mailbox_ = ready ? token : kNone;
    }
    // Orders the mailbox's write before the reads below, and the front's acquires before the sum's
    // loads in all threads.
    meet();
    return *mailbox_;  // read before the barrier in sum(), written next after it
  }

  // Front: one lane per row block.
  __device__ bool wait_ready(int token) {
    if (thread() == 0)
      writer_.record(Point::ready_wait_begin, token);
    const std::int32_t* slots = layer_.slots + static_cast<std::int64_t>(token) * layer_.topk;
    bool ready = !stopped_;
    for (int k = thread(); ready && k < layer_.topk; k += 32) {
      const int row_block = slots[k] / 128;
      // Acquires what the tile's storer released: orders the tile's stores before the sum's loads.
      ready = wait_for_counter(layer_.guard, Wait::ready, row_block, layer_.done[row_block],
                               combine_.done_at);
    }
    ready = __all_sync(~0u, ready) != 0;
    if (thread() == 0 && ready)
      writer_.record(Point::ready, token);
    return ready;
  }

  __device__ void sum(int token) {
    if (thread() == 0)
      writer_.record(Point::sum_begin, token);
    pass(layer_.guard, token, layer_.delays.job);  // if aborted, the next job's wait is, too
    combine_row(layer_, token, thread(), kJobThreads, reinterpret_cast<uint4*>(buffer()));
    // Orders this thread's stores to the row buffer before the bulk copy that reads it: the proxy
    // fence here, in each writing thread, then the barrier.
    ptx::fence_proxy_async(ptx::space_shared);
    meet();
    if (thread() == 0)
      writer_.record(Point::summed, token);
  }

  // The push of this job starts, the one before it is completed. Its buffer is written again by the
  // job after this one, which the pusher lets begin (next_ready) only then.
  __device__ void push(int token) {
    if (is_pusher()) {
      writer_.record(Point::push_issued, token);
      pass(layer_.guard, token, layer_.delays.push);
      const int to = layer_.source_rank(token);
      const int t = token - to * layer_.tokens_per_rank;
      const bool paced = layer_.link_row_time > 0 && to != layer_.rank;
      const std::uint64_t through = paced ? book_link(layer_, layer_.counters->push_free[to]) : 0;
      start_store(
          layer_.shared[to].staging +
              (static_cast<std::int64_t>(layer_.rank) * layer_.tokens_per_rank + t) * layer_.hidden,
          buffer(), layer_.row_bytes());
      ptx::cp_async_bulk_commit_group();
      if (pending_ != kNone) {
        wait_stored<1>();
        count_push();
      }
      pending_ = token;
      through_ = through;
    }
    current_ ^= 1;
  }

  // Completes and counts the last push.
  __device__ void finish() {
    if (is_pusher() && pending_ != kNone) {
      wait_stored<0>();
      count_push();
    }
  }

  // The pending push is complete at the receiver; count it, and if it was the chunk's last, raise the
  // watermark. Every count is local to this GPU; the watermark has one writer: the elected pusher.
  __device__ void count_push() {
    if (through_ > 0)
      wait_for_clock(layer_.guard, pending_, through_);
    writer_.record(Point::pushed, pending_);
    if (pending_ == layer_.faults.lost_push)
      return;
    const int to = layer_.source_rank(pending_);
    const int t = pending_ - to * layer_.tokens_per_rank;
    const int chunks = combine_.watermark_chunks;
    const int chunk = layer_.chunk_of(t, chunks);
    const auto size = static_cast<std::uint32_t>(layer_.chunk_begin(chunk + 1, chunks) -
                                                 layer_.chunk_begin(chunk, chunks));
    // Orders this row, written to the receiver's memory, before the elected pusher's release of the
    // watermark: release here, acquire there, both on the count.
    __threadfence_system();
    const std::uint32_t before = GpuAtomic<std::uint32_t>(layer_.counters->pushed[to][chunk])
                                     .fetch_add(1, cuda::memory_order_acq_rel);
    writer_.record(Point::push_counted, pending_);
    if (before + 1 != size)
      return;
    writer_.record(Point::watermark_begin, to, chunk);
    pass(layer_.guard, pending_, layer_.delays.watermark);
    // Orders all rows of the chunk, of this and of the other jobs, before the receiver's acquire of
    // the watermark.
    __threadfence_system();
    if (to == layer_.faults.lost_watermark)
      return;
    raise_flag(layer_.shared[to].flags->watermark[layer_.rank][chunk], layer_.counters->iteration);
    writer_.record(Point::watermark_raised, to, chunk);
  }

  __device__ unsigned char* buffer() const {
    return rows_ + static_cast<std::size_t>(current_) * layer_.row_bytes();
  }

  const LayerArgs& layer_;
  const CombineArgs& combine_;
  unsigned char* rows_;
  std::int32_t* mailbox_;
  unsigned barrier_;
  bool stopped_;  // front: an earlier phase was aborted, no job starts
  int current_ = 0;
  int pending_ = kNone;        // pusher: token of the push in flight
  std::uint64_t through_ = 0;  // pusher: when the emulated link has carried it; 0 = not paced
  [[no_unique_address]] typename Records::Writer writer_;  // front's first thread, pusher
};

}  // namespace fusescope::kernels
