#pragma once
// Communication role of kernel 1: pulls every token's row once, from its source rank, and scatters it
// to its K slots of the gathered buffer; counts the landed rows per row block. Where the GEMM gathers
// (knob dispatch), a peer's row is stored once, to its place among all tokens; an own token's row lies
// there already, and is only counted. With dispatch push all rows do.
//
// A block holds `tokens_per_block` rows in shared memory. Each row slot has one thread of its own and
// runs on its own; slots lie in different warps as long as there are warps, so that one slot's wait
// holds up no other. When run() returns in a thread, no copy into or out of its slot's shared memory is
// in flight: other threads may reuse it after a barrier, for bulk copies too.

#include <cstdint>

#include "kernels/bulk_copy.cuh"
#include "kernels/layer_args.hpp"
#include "kernels/recording.cuh"

namespace fusescope::kernels {

// One token's way from its source rank to its slots, step by step, for whoever takes the steps.
template <bool Gathers>
struct TokenCopies {
  const LayerArgs& layer;

  // At this position of the pull order.
  __device__ int token_at(int position) const {
    return layer.pull_order == nullptr ? position : layer.pull_order[position];
  }

  // Where the GEMM gathers it from, since copy-in.
  __device__ bool is_in_place(int token) const {
    return Gathers && (layer.tokens_pushed || layer.source_rank(token) == layer.rank);
  }

  __device__ const unsigned char* source(int token) const {
    const int rank = layer.source_rank(token);
    const int t = token - rank * layer.tokens_per_rank;
    return reinterpret_cast<const unsigned char*>(layer.shared[rank].tokens) +
           static_cast<std::int64_t>(t) * layer.row_bytes();
  }

  // Injected. [ns]
  __device__ std::uint32_t pull_delay(int token) const {
    const Delays& delays = layer.delays;
    return delays.pull + (layer.source_rank(token) == delays.rank ? delays.source_rank : 0) +
           (token == delays.token ? delays.one_token : 0) +
           (delays.one_expert > 0 && is_routed_to(token, delays.expert) ? delays.one_expert : 0);
  }

  // When the emulated link is through with the row [ns]; 0: it is not paced.
  __device__ std::uint64_t book(int token) const {
    const int rank = layer.source_rank(token);
    const bool paced = layer.link_row_time > 0 && rank != layer.rank;
    return paced ? book_link(layer, layer.counters->pull_free[rank]) : 0;
  }

  // Of `bytes` from byte `first` of the row, which lie at `from`, to where the GEMM reads them. Committed.
  __device__ void start_stores(int token, const unsigned char* from, std::uint32_t first,
                               std::uint32_t bytes) const {
    if constexpr (Gathers) {
      start_store(row(layer.all_tokens, token) + first, from, bytes);
    } else {
      const std::int32_t* slots = this->slots(token);
      for (int k = 0; k < layer.topk; ++k)
        start_store(row(layer.gathered, slots[k]) + first, from, bytes);
    }
    ptx::cp_async_bulk_commit_group();
  }

  __device__ void count_arrivals(int token) const {
    const std::int32_t* slots = this->slots(token);
    // One fence and K relaxed increments: each increment then releases the row. Orders its stores before
    // the gate's acquire of the counter, and so before the GEMM's loads. A row that copy-in put in place,
    // a peer's included, is ordered by the kernel boundary.
    if (!is_in_place(token))
      cuda::atomic_thread_fence(cuda::memory_order_acq_rel, cuda::thread_scope_device);
    const int first = token == layer.faults.lost_arrival ? 1 : 0;
    for (int k = first; k < layer.topk; ++k) {
      GpuAtomic<std::uint32_t>(layer.arrivals[slots[k] / 128].value)
          .fetch_add(1, cuda::memory_order_relaxed);
    }
  }

 private:
  __device__ const std::int32_t* slots(int token) const {
    return layer.slots + static_cast<std::int64_t>(token) * layer.topk;
  }
  __device__ unsigned char* row(Bf16* rows, int number) const {
    return reinterpret_cast<unsigned char*>(rows) +
           static_cast<std::int64_t>(number) * layer.row_bytes();
  }

  __device__ bool is_routed_to(int token, int expert) const {
    const std::int32_t* slots = this->slots(token);
    bool routed = false;
    for (int k = 0; k < layer.topk; ++k) {
      routed = routed ||
               (slots[k] >= layer.expert_rows[expert] && slots[k] < layer.expert_rows[expert + 1]);
    }
    return routed;
  }
};

template <class Records, bool Gathers>
struct Communication {
  const LayerArgs& layer;
  unsigned char* smem;  // tokens_per_block rows, then one mbarrier per row
  int tokens_per_block;
  int block;  // among the communication blocks
  int blocks;
  int tokens;  // so many, from the begin of the pull order
  int warps;   // of the block that do this, the first ones; at most 32 slots each

  // Where a wait is given up, the slot leaves early.
  __device__ void run() const {
    const int slot =
        static_cast<int>(threadIdx.x) / 32 + static_cast<int>(threadIdx.x) % 32 * warps;
    if (slot < tokens_per_block)
      run_slot(slot);
  }

 private:
  using Writer = typename Records::Writer;

  __device__ void run_slot(int slot) const {
    // An earlier phase may have been aborted: nothing starts then. Used only after the first token has
    // been looked up, so that the two loads are under way together.
    bool stopped = aborted(layer.guard);
    const std::uint32_t bytes = layer.row_bytes();
    unsigned char* row = smem + static_cast<std::size_t>(slot) * bytes;
    auto* barriers =
        reinterpret_cast<std::uint64_t*>(smem + static_cast<std::size_t>(tokens_per_block) * bytes);
    std::uint64_t& landed = barriers[slot];
    ptx::mbarrier_init(&landed, 1);
    // Orders the barrier's initialisation (a generic store) before the copy engine's complete_tx.
    ptx::fence_mbarrier_init(ptx::sem_release, ptx::scope_cluster);
    // Orders the peers' copy-in, which the device barrier of an earlier kernel made visible to the
    // generic proxy, before this thread's bulk loads of it, which belong to the async proxy.
    ptx::fence_proxy_async(ptx::space_global);

    Writer writer(layer.records, Family::dispatch_slots, block, slot);
    // Strided over slots first: the blocks together always fetch a contiguous window of pull order.
    std::uint32_t parity = 0;
    for (int i = slot * blocks + block; i < tokens; i += blocks * tokens_per_block) {
      const int token = copies().token_at(i);
      stopped = stopped || !pull(writer, token, row, landed, parity);
      if (stopped)
        break;
      writer.record(Point::pull_landed, token);
      if (!copies().is_in_place(token))
        store(token, row);
      writer.record(Point::scattered, token);
      copies().count_arrivals(token);
      writer.record(Point::counted, token);
    }
    retire_barrier(landed);
    // Orders this thread's uses of the barrier's memory, generic ones, before bulk copies into it.
    ptx::fence_proxy_async(ptx::space_shared);
  }

  __device__ TokenCopies<Gathers> copies() const { return {layer}; }

  // False: aborted, and no copy into `row` is in flight.
  __device__ bool pull(Writer& writer, int token, unsigned char* row, std::uint64_t& landed,
                       std::uint32_t& parity) const {
    writer.record(Point::pull_issued, token);
    if (!pass(layer.guard, token, copies().pull_delay(token)))
      return false;
    if (copies().is_in_place(token) && token != layer.faults.lost_pull)
      return true;
    const std::uint64_t through = copies().book(token);
    const bool started = token != layer.faults.lost_pull;
    if (started)
      start_load(row, copies().source(token), layer.row_bytes(), landed);
    if (!wait_landed(layer.guard, token, landed, parity)) {
      if (started)
        drain(landed, parity);
      return false;
    }
    parity ^= 1;
    return through == 0 || wait_for_clock(layer.guard, token, through);
  }

  // To where the GEMM reads it.
  __device__ void store(int token, const unsigned char* row) const {
    pass(layer.guard, token, layer.delays.scatter);  // if aborted, the next pull is, too
    copies().start_stores(token, row, 0, layer.row_bytes());
    // Also orders the stores' reads of `row` before the next load into it.
    wait_stored();
  }
};

}  // namespace fusescope::kernels
