#pragma once
// Device side of the third kernel: the push role, and the blocks' ways through GEMM and pushes. Gate and
// signal of the GEMM are kernel 2's: nothing is waited for, each finished tile counts on its row block.

#include "kernels/bulk_copy.cuh"
#include "kernels/counter_gate.cuh"
#include "kernels/gemm/grouped_gemm.cuh"
#include "kernels/gemm_combine_push.cuh"
#include "kernels/gemm_reduce_scatter.hpp"
#include "kernels/recording.cuh"
#include "kernels/sm_clock.cuh"

namespace fusescope::kernels {

// Rows [t, t + rows) of destination `to`'s T: they lie together where the GEMM writes them, from `slot`
// on, and in this rank's plane on `to`. So a push is one bulk copy in and one out.
struct Push {
  int to;
  int t;
  int rows;
  int slot;
};

// Each pusher is one thread with a buffer of its own; pushers lie in different warps as long as there are
// warps, so that one pusher's wait holds up no other. Pushes are claimed in slot order, in which the
// GEMM computes, so that what is claimed first is ready first. When run() returns in a thread, no copy
// into or out of its buffer is in flight.
//
// A pusher's records are those of a job of kernel 2 (timeline/records/record.hpp): the job's token is the
// push's first, its position the push's number, its sum the load.
template <class Records>
struct PushRole {
  const LayerArgs& layer;
  const PushArgs& push;
  unsigned char* smem;  // `pushers` buffers of `rows` rows, then one mbarrier per pusher
  Family family;
  int block;  // within the family

  __device__ void run() const {
    const int warps = static_cast<int>(blockDim.x) / 32;
    const int pusher =
        static_cast<int>(threadIdx.x) / 32 + static_cast<int>(threadIdx.x) % 32 * warps;
    if (pusher < push.pushers)
      run_pusher(pusher);
  }

 private:
  using Writer = typename Records::Writer;

  __device__ void run_pusher(int pusher) const {
    Writer front(layer.records, family, block, pusher * kWritersPerPusher + timeline::kFront);
    Writer fetches(layer.records, family, block, pusher * kWritersPerPusher + timeline::kSummer);
    Writer back(layer.records, family, block, pusher * kWritersPerPusher + timeline::kPusher);
    const std::size_t bytes = static_cast<std::size_t>(push.rows) * layer.row_bytes();
    unsigned char* buffer = smem + static_cast<std::size_t>(pusher) * bytes;
    std::uint64_t& landed = reinterpret_cast<std::uint64_t*>(
        smem + static_cast<std::size_t>(push.pushers) * bytes)[pusher];
    ptx::mbarrier_init(&landed, 1);
    // Orders the barrier's initialisation (a generic store) before the copy engine's complete_tx.
    ptx::fence_mbarrier_init(ptx::sem_release, ptx::scope_cluster);
    // Orders the GEMM's generic stores to this memory, which the join barrier has made this thread's
    // past, before bulk copies into it.
    ptx::fence_proxy_async(ptx::space_shared);

    const int pushes_per_rank = (layer.tokens_per_rank + push.rows - 1) / push.rows;
    const int pushes = (layer.ranks - 1) * pushes_per_rank;
    // An earlier phase may have been aborted: nothing starts then.
    bool stopped = aborted(layer.guard);
    for (std::uint32_t parity = 0; !stopped; parity ^= 1) {
      front.record(Point::claim_begin);
      const int number = claim();
      front.record(Point::claimed, number < pushes ? number : layer.tokens);
      if (number >= pushes)
        break;
      const Push p = push_at(number / pushes_per_rank, number % pushes_per_rank);
      stopped = !wait_ready(p, front) || !fetch(p, buffer, landed, parity, fetches);
      if (!stopped) {
        send(p, buffer, back);
        count(p, back);
      }
    }
  }

  __device__ int claim() const {
    return static_cast<int>(GpuAtomic<std::uint32_t>(layer.counters->dispenser)
                                .fetch_add(1, cuda::memory_order_relaxed));
  }

  __device__ Push push_at(int remote, int within) const {
    const int segment = remote_segment(push.row_order, layer.rank, remote);
    Push p;
    p.to = destination_of(push.row_order, layer.rank, layer.ranks, segment);
    p.t = within * push.rows;
    p.rows = min(push.rows, layer.tokens_per_rank - p.t);
    p.slot = segment * layer.tokens_per_rank + p.t;
    return p;
  }

  // The push's row blocks; rows of one push may lie in two.
  __device__ bool wait_ready(const Push& p, Writer& front) const {
    front.record(Point::ready_wait_begin, first_token(p));
    for (int b = p.slot / kBlockRows; b <= (p.slot + p.rows - 1) / kBlockRows; ++b) {
      // Acquires what the tile's storer released: orders the tile's stores before what follows.
      if (!wait_for_counter(layer.guard, Wait::ready, b, layer.done[b].value, push.done_at))
        return false;
    }
    // The loads that follow are bulk copies, and belong to the async proxy.
    ptx::fence_proxy_async(ptx::space_global);
    front.record(Point::ready, first_token(p));
    return true;
  }

  // False: aborted, and no copy into `buffer` is in flight.
  __device__ bool fetch(const Push& p, unsigned char* buffer, std::uint64_t& landed,
                        std::uint32_t parity, Writer& fetches) const {
    fetches.record(Point::sum_begin, first_token(p));
    const bool started = !holds(p, layer.faults.lost_pull);
    if (started) {
      start_load(buffer, layer.partial + static_cast<std::int64_t>(p.slot) * layer.hidden,
                 bytes_of(p), landed);
    }
    if (wait_landed(layer.guard, first_token(p), landed, parity)) {
      fetches.record(Point::summed, first_token(p));
      return true;
    }
    if (started)
      drain(landed, parity);
    return false;
  }

  __device__ void send(const Push& p, const unsigned char* buffer, Writer& back) const {
    back.record(Point::push_issued, first_token(p));
    const std::int64_t row = static_cast<std::int64_t>(layer.rank) * layer.tokens_per_rank + p.t;
    start_store(layer.shared[p.to].staging + row * layer.hidden, buffer, bytes_of(p));
    ptx::cp_async_bulk_commit_group();
    // Written, not merely read: the count publishes them. Also orders the store's reads of `buffer`
    // before the next load into it.
    wait_stored();
    back.record(Point::pushed, first_token(p));
  }

  // The push is complete at the receiver. Counts its rows, and where they were a chunk's last, raises the
  // watermark. Every count is local to this GPU; the watermark has one writer: the elected pusher.
  __device__ void count(const Push& p, Writer& back) const {
    if (holds(p, layer.faults.lost_push))
      return;
    // Counting orders these rows, written to the receiver's memory, before the elected pusher's release of
    // the watermark: release here, acquire there, both on the count and of gpu scope; that release, of
    // system scope, carries them to the receiver.
    const int chunks = push.watermark_chunks;
    const int first = layer.chunk_of(p.t, chunks);
    const int last = layer.chunk_of(p.t + p.rows - 1, chunks);
    static_assert(kMaxWatermarkChunks <= 64, "one bit per chunk");
    std::uint64_t elected = 0;
    for (int chunk = first; chunk <= last; ++chunk) {
      const int begin = layer.chunk_begin(chunk, chunks);
      const int end = layer.chunk_begin(chunk + 1, chunks);
      const int rows = min(end, p.t + p.rows) - max(begin, p.t);
      // With more chunks than rows some are empty.
      if (rows > 0 && completes(p.to, chunk, static_cast<std::uint32_t>(rows),
                                static_cast<std::uint32_t>(end - begin)))
        elected |= std::uint64_t{1} << chunk;
    }
    back.record(Point::push_counted, first_token(p));
    for (int chunk = first; elected != 0 && chunk <= last; ++chunk) {
      if ((elected >> chunk & 1) != 0)
        raise(p.to, chunk, back);
    }
  }

  __device__ bool completes(int to, int chunk, std::uint32_t rows, std::uint32_t size) const {
    const std::uint32_t before = GpuAtomic<std::uint32_t>(layer.counters->pushed[to][chunk])
                                     .fetch_add(rows, cuda::memory_order_acq_rel);
    return before + rows == size;
  }

  __device__ void raise(int to, int chunk, Writer& back) const {
    if (to == layer.faults.lost_watermark)
      return;
    back.record(Point::watermark_begin, to, chunk);
    // Releases all rows of the chunk, of this and of the other pushes, to who acquires the watermark.
    raise_flag(layer.shared[to].flags->watermark[layer.rank][chunk], layer.counters->iteration);
    back.record(Point::watermark_raised, to, chunk);
  }

  __device__ std::uint32_t bytes_of(const Push& p) const {
    return static_cast<std::uint32_t>(p.rows) * layer.row_bytes();
  }
  __device__ int first_token(const Push& p) const { return p.to * layer.tokens_per_rank + p.t; }
  __device__ bool holds(const Push& p, int token) const {
    return token >= first_token(p) && token < first_token(p) + p.rows;
  }

  static constexpr int kWritersPerPusher = static_cast<int>(timeline::kJobWriters);
};

// The variant travels as its index: nvcc takes no class-typed template arguments on kernels.
template <int Index, class Records>
__global__ void __launch_bounds__(gemm_threads(kGemmVariants[Index]), 1)
    gemm_reduce_scatter_kernel(const __grid_constant__ GemmReduceScatterArgs args) {
  extern __shared__ __align__(1024) unsigned char smem[];
  const int block = static_cast<int>(blockIdx.x);
  const bool computes = block < args.compute_blocks;
  const typename Records::PhaseStamps stamps(args.layer.records, Phase::gemm_combine_push);
  if (computes) {
    const SmClock clock(args.layer.clock);
    const LayerArgs& layer = args.layer;
    CounterGate gate{layer.guard, nullptr, 0, Wait::computed, aborted(layer.guard)};
    CounterSignal signal{layer.done, layer.faults.lost_tile};
    typename Records::TileProbe probe(args.layer.records, Family::combine_tiles, block,
                                      copy_thread(kGemmVariants[Index]));
    grouped_gemm<kGemmVariants[Index]>(args.gemm, smem, gate, signal, probe, block,
                                       args.compute_blocks);
    if (!args.all_hands)
      return;
    // Orders the GEMM's last uses of shared memory, the copy engine's included, before the pushes'
    // buffers. Not barrier 0, and not the GEMM's: its warps leave that one at different times.
    __barrier_sync_count(kJoinBarrier, gemm_threads(kGemmVariants[Index]));
  }
  PushRole<Records>{args.layer, args.push, smem,
                    computes ? Family::combine_joined : Family::combine_jobs,
                    computes ? block : block - args.compute_blocks}
      .run();
}

}  // namespace fusescope::kernels
