#pragma once
// Combine jobs: the weighted sum of a token's K partial rows, pushed to the token's source rank.
//
// The three warpgroups of a block take jobs independently. A warpgroup runs its jobs in three parts, side
// by side:
//   front     one warp: claims jobs, waits until their row blocks are ready, and fetches their rows piece
//             by piece, as far ahead as the ring has room
//   summing   two warps: sum the pieces into a row buffer
//   pusher    one thread: pushes row buffers, completes and counts each push after the next was issued
// The parts hand pieces and rows over by the barriers of job_memory.cuh, so that neither a job's wait, nor
// the latency of its rows or of its push holds up another's sum.

#include <cstdint>
#include <utility>

#include "kernels/bulk_copy.cuh"
#include "kernels/job_memory.cuh"
#include "kernels/recording.cuh"
#include "kernels/row_math.cuh"

namespace fusescope::kernels {

inline constexpr int kSummingWarps = 2;
inline constexpr unsigned kFirstJobBarrier = 3;  // named barriers, one per warpgroup

// One warpgroup's way through the jobs. Every thread of the warpgroup makes one, and calls the same
// method. A record is the first thread's of the front, of the summing warps, or the pusher's, each with a
// writer of its own.
template <class Records>
class JobRunner {
 public:
  // What the records call it: a warpgroup of a block of a family.
  struct Place {
    Family family;
    int block;
    int group;
  };

  // `barrier`: a named barrier of this warpgroup's own. `smem`: job_group_bytes, which no copy reads or
  // writes any more.
  __device__ JobRunner(const LayerArgs& layer, const CombineArgs& combine, unsigned char* smem,
                       unsigned barrier, const Place& place)
      : layer_(layer),
        combine_(combine),
        memory_{smem, static_cast<int>(layer.row_bytes()), layer.topk, combine.ring},
        control_(memory_.control()),
        writer_(layer.records, place.family, place.block,
                place.group * timeline::kJobWriters + writer_of_thread()) {
    if (thread() == 0)
      memory_.init(kSummingWarps);
    // Orders the initialisation before the other parts' uses of the barriers.
    __barrier_sync_count(barrier, kJobThreads);
  }

  // Claims jobs from the dispenser until there are none left.
  __device__ void run_dispenser() {
    run([this] { return claim(); });
  }

  // The one job at this position of the job order.
  __device__ void run_one(int position) {
    run([&] { return std::exchange(position, layer_.tokens); });
  }

 private:
  static constexpr int kFrontWarp = 0;
  static constexpr int kFirstSummingWarp = 1;
  static constexpr int kPusherWarp = kFirstSummingWarp + kSummingWarps;
  static_assert((kPusherWarp + 1) * 32 == kJobThreads);

  __device__ static int thread() { return static_cast<int>(threadIdx.x) % kJobThreads; }
  __device__ static int warp() { return thread() / 32; }
  __device__ static int lane() { return static_cast<int>(threadIdx.x) % 32; }

  __device__ static int writer_of_thread() {
    switch (thread()) {
      case kFrontWarp * 32:
        return timeline::kFront;
      case kFirstSummingWarp * 32:
        return timeline::kSummer;
      case kPusherWarp * 32:
        return timeline::kPusher;
      default:
        return kNoWriter;
    }
  }
  static constexpr int kNoWriter = kJobGroups * timeline::kJobWriters;

  __device__ int piece_units() const { return combine_.ring.piece_units; }

  template <class Next>
  __device__ void run(Next next) {
    if (warp() == kFrontWarp) {
      fetch_jobs(next);
    } else if (warp() == kPusherWarp) {
      if (lane() == 0)
        push_rows();
    } else {
      sum_jobs();
    }
  }

  // --- front: lane k % 32 looks after hit k ----------------------------------------------------------

  // `next` gives positions in job order, not below R*T when there are none left.
  template <class Next>
  __device__ void fetch_jobs(Next next) {
    // An earlier phase may have been aborted: no job starts then.
    bool stopped = aborted(layer_.guard);
    PiecePosition ring{combine_.ring.pieces};
    for (int token = token_at(next()); token != kNoToken && !stopped;) {
      stopped = !wait_ready(token);
      if (stopped)
        break;
      const int following = token_at(next());  // on its way while this job's rows are
      fetch(token, ring);
      token = following;
    }
    if (lane() == 0) {
      wait_free(control_.empty[ring.slot], ring.parity);
      control_.piece_token[ring.slot] = kNoToken;
      arrive(control_.full[ring.slot]);
    }
  }

  // The same in all lanes.
  __device__ int claim() {
    int position = 0;
    if (lane() == 0) {
      writer_.record(Point::claim_begin);
      position = static_cast<int>(GpuAtomic<std::uint32_t>(layer_.counters->dispenser)
                                      .fetch_add(1, cuda::memory_order_relaxed));
    }
    position = __shfl_sync(~0u, position, 0);
    if (lane() == 0)
      writer_.record(Point::claimed, position);
    return position;
  }

  __device__ int token_at(int position) const {
    if (position >= layer_.tokens)
      return kNoToken;
    return layer_.job_order == nullptr ? position : layer_.job_order[position];
  }

  __device__ const std::int32_t* slots(int token) const {
    return layer_.slots + static_cast<std::int64_t>(token) * layer_.topk;
  }

  // False: a wait was given up.
  __device__ bool wait_ready(int token) {
    if (lane() == 0)
      writer_.record(Point::ready_wait_begin, token);
    bool ready = true;
    for (int k = lane(); ready && k < layer_.topk; k += 32) {
      const int row_block = slots(token)[k] / 128;
      // Acquires what the tile's storer released: orders the tile's stores before this lane's loads.
      ready = wait_for_counter(layer_.guard, Wait::ready, row_block, layer_.done[row_block].value,
                               combine_.done_at);
    }
    // The acquire orders later generic accesses only; the loads are bulk copies.
    ptx::fence_proxy_async(ptx::space_global);
    const bool all_ready = __all_sync(~0u, ready) != 0;
    if (lane() == 0 && all_ready)
      writer_.record(Point::ready, token);
    return all_ready;
  }

  __device__ void fetch(int token, PiecePosition& ring) const {
    const float* const weights =
        layer_.mine().weights + static_cast<std::int64_t>(token) * layer_.topk;
    const int units = layer_.hidden / 8;
    for (int first = 0; first < units; first += piece_units(), ring.advance()) {
      const auto bytes = static_cast<std::uint32_t>(min(piece_units(), units - first) * 16);
      std::uint64_t& full = control_.full[ring.slot];
      wait_free(control_.empty[ring.slot], ring.parity);
      for (int k = lane(); k < layer_.topk; k += 32)
        memory_.weights(ring.slot)[k] = weights[k];
      __syncwarp();
      if (lane() == 0) {
        // The token and the weights are generic stores: the summing warps acquire `full`, which this
        // releases.
        control_.piece_token[ring.slot] = token;
        ptx::mbarrier_arrive_expect_tx(ptx::sem_release, ptx::scope_cta, ptx::space_shared, &full,
                                       bytes * static_cast<std::uint32_t>(layer_.topk));
      }
      for (int k = lane(); k < layer_.topk; k += 32) {
        const Bf16* const row =
            layer_.partial + static_cast<std::int64_t>(slots(token)[k]) * layer_.hidden + first * 8;
        start_last_load(memory_.piece(ring.slot, k), row, bytes, full);
      }
    }
  }

  // --- summing warps -------------------------------------------------------------------------------

  __device__ void sum_jobs() {
    PiecePosition ring{combine_.ring.pieces};
    RingCursor<kJobRows> row;
    for (;; row.advance()) {
      wait_phase(control_.full[ring.slot], ring.parity);
      const int token = control_.piece_token[ring.slot];
      if (token != kNoToken)
        writer_.record(Point::fetched, token);
      wait_free(control_.drained[row.slot], row.parity);
      if (token != kNoToken) {
        writer_.record(Point::sum_begin, token);
        pass(layer_.guard, token, layer_.delays.job);  // if aborted, the next job's wait is, too
        sum(memory_.row(row.slot), ring);
        // Orders this thread's stores to the row buffer before the bulk copy that reads it: the proxy
        // fence here, in each writing thread, then the barrier that hands the row over.
        ptx::fence_proxy_async(ptx::space_shared);
        __syncwarp();
        writer_.record(Point::summed, token);
      }
      if (lane() == 0) {
        if (warp() == kFirstSummingWarp)
          control_.row_token[row.slot] = token;
        arrive(control_.summed[row.slot]);
      }
      if (token == kNoToken)
        return;
    }
  }

  // The pieces of one job, the first of which is here.
  __device__ void sum(uint4* row, PiecePosition& ring) const {
    const int units = layer_.hidden / 8;
    for (int first = 0; first < units; first += piece_units(), ring.advance()) {
      wait_phase(control_.full[ring.slot], ring.parity);
      const int count = min(piece_units(), units - first);
      for (int unit = thread() - kFirstSummingWarp * 32; unit < count; unit += kSummingWarps * 32) {
        row[first + unit] = sum_hits(memory_.piece(ring.slot, 0) + unit, piece_units(),
                                     memory_.weights(ring.slot), layer_.topk);
      }
      __syncwarp();
      if (lane() == 0)
        arrive(control_.empty[ring.slot]);
    }
  }

  // --- pusher --------------------------------------------------------------------------------------

  __device__ void push_rows() {
    int pending = kNoToken;  // token of the push in flight
    std::uint64_t pending_through = 0;
    RingCursor<kJobRows> row;
    for (;; row.advance()) {
      wait_phase(control_.summed[row.slot], row.parity);
      const int token = control_.row_token[row.slot];
      if (token == kNoToken)
        break;
      const std::uint64_t through = start_push(token, memory_.row(row.slot));
      // The buffer may be written again as soon as the copy engine has read it; the push itself is
      // complete later, and counted then.
      ptx::cp_async_bulk_wait_group_read(ptx::n32_t<0>());
      arrive(control_.drained[row.slot]);
      if (pending != kNoToken) {
        wait_stored<1>();
        count_push(pending, pending_through);
      }
      pending = token;
      pending_through = through;
    }
    if (pending != kNoToken) {
      wait_stored<0>();
      count_push(pending, pending_through);
    }
  }

  // Returns when the emulated link will have carried the row; 0 = not paced.
  __device__ std::uint64_t start_push(int token, const uint4* row) {
    writer_.record(Point::push_issued, token);
    pass(layer_.guard, token, layer_.delays.push);
    const int to = layer_.source_rank(token);
    const int t = token - to * layer_.tokens_per_rank;
    const bool paced = layer_.link_row_time > 0 && to != layer_.rank;
    const std::uint64_t through = paced ? book_link(layer_, layer_.counters->push_free[to]) : 0;
    start_store(
        layer_.shared[to].staging +
            (static_cast<std::int64_t>(layer_.rank) * layer_.tokens_per_rank + t) * layer_.hidden,
        row, layer_.row_bytes());
    ptx::cp_async_bulk_commit_group();
    return through;
  }

  // The push is complete at the receiver; count it, and if it was the chunk's last, raise the
  // watermark. Every count is local to this GPU; the watermark has one writer: the elected pusher.
  __device__ void count_push(int token, std::uint64_t through) {
    if (through > 0)
      wait_for_clock(layer_.guard, token, through);
    writer_.record(Point::pushed, token);
    if (token == layer_.faults.lost_push)
      return;
    const int to = layer_.source_rank(token);
    const int t = token - to * layer_.tokens_per_rank;
    const int chunks = combine_.watermark_chunks;
    const int chunk = layer_.chunk_of(t, chunks);
    const auto size = static_cast<std::uint32_t>(layer_.chunk_begin(chunk + 1, chunks) -
                                                 layer_.chunk_begin(chunk, chunks));
    // Orders this row, written to the receiver's memory, before the elected pusher's release of the
    // watermark: release here, acquire there, both on the count. Of gpu scope, since both are threads of
    // this GPU; it is the elected one's release, of system scope, that carries all rows to the receiver. A
    // fence of system scope here, for each row, took 5 to 11 us under load.
    const std::uint32_t before = GpuAtomic<std::uint32_t>(layer_.counters->pushed[to][chunk])
                                     .fetch_add(1, cuda::memory_order_acq_rel);
    writer_.record(Point::push_counted, token);
    if (before + 1 != size)
      return;
    writer_.record(Point::watermark_begin, to, chunk);
    pass(layer_.guard, token, layer_.delays.watermark);
    if (to == layer_.faults.lost_watermark)
      return;
    // Releases all rows of the chunk, of this and of the other jobs, to who acquires the watermark.
    raise_flag(layer_.shared[to].flags->watermark[layer_.rank][chunk], layer_.counters->iteration);
    writer_.record(Point::watermark_raised, to, chunk);
  }

  const LayerArgs& layer_;
  const CombineArgs& combine_;
  JobMemory memory_;
  JobControl& control_;
  [[no_unique_address]] typename Records::Writer writer_;
};

}  // namespace fusescope::kernels
