#pragma once
// Communication role of kernel 1: pulls every token's row once, from its source rank, and scatters it
// to its K slots of the gathered buffer; counts the landed rows per row block. Where the GEMM gathers
// (knob dispatch), a peer's row is stored once, to its place among all tokens; an own token's row lies
// there already, and is only counted.
//
// A block holds `tokens_per_block` rows in shared memory. Each row slot has one thread of its own and
// runs on its own; slots lie in different warps as long as there are warps, so that one slot's wait
// holds up no other. When run() returns in a thread, with either result, no copy into or out of its
// slot's shared memory is in flight: other threads may reuse it after a barrier, for bulk copies too.

#include <cstdint>

#include "kernels/bulk_copy.cuh"
#include "kernels/layer_args.hpp"
#include "kernels/recording.cuh"

namespace fusescope::kernels {

template <class Records, bool Gathers>
struct Communication {
  const LayerArgs& layer;
  unsigned char* smem;  // tokens_per_block rows, then one mbarrier per row
  int tokens_per_block;
  int block;  // among the communication blocks
  int blocks;

  // False: this thread's slot left early, because the launch was aborted.
  __device__ bool run() const {
    const int warps = static_cast<int>(blockDim.x) / 32;
    const int slot =
        static_cast<int>(threadIdx.x) / 32 + static_cast<int>(threadIdx.x) % 32 * warps;
    return slot >= tokens_per_block || run_slot(slot);
  }

 private:
  using Writer = typename Records::Writer;

  __device__ bool run_slot(int slot) const {
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
    for (int i = slot * blocks + block; i < layer.tokens; i += blocks * tokens_per_block) {
      const int token = layer.pull_order == nullptr ? i : layer.pull_order[i];
      stopped = stopped || !pull(writer, token, row, landed, parity);
      if (stopped)
        break;
      writer.record(Point::pull_landed, token);
      if (!is_in_place(token))
        store(token, row);
      writer.record(Point::scattered, token);
      count_arrivals(token);
      writer.record(Point::counted, token);
    }
    retire_barrier(landed);
    // Orders this thread's uses of the barrier's memory, generic ones, before bulk copies into it.
    ptx::fence_proxy_async(ptx::space_shared);
    return !stopped;
  }

  __device__ bool is_in_place(int token) const {
    return Gathers && layer.source_rank(token) == layer.rank;
  }

  // False: aborted, and no copy into `row` is in flight.
  __device__ bool pull(Writer& writer, int token, unsigned char* row, std::uint64_t& landed,
                       std::uint32_t& parity) const {
    const int source = layer.source_rank(token);
    const int t = token - source * layer.tokens_per_rank;
    writer.record(Point::pull_issued, token);
    if (!delay_pull(token, source))
      return false;
    if (is_in_place(token) && token != layer.faults.lost_pull)
      return true;
    const bool paced = layer.link_row_time > 0 && source != layer.rank;
    const std::uint64_t through = paced ? book_link(layer, layer.counters->pull_free[source]) : 0;
    const bool started = token != layer.faults.lost_pull;
    if (started) {
      start_load(row, layer.shared[source].tokens + static_cast<std::int64_t>(t) * layer.hidden,
                 layer.row_bytes(), landed);
    }
    if (!wait_landed(layer.guard, token, landed, parity)) {
      if (started)
        drain(landed, parity);
      return false;
    }
    parity ^= 1;
    return !paced || wait_for_clock(layer.guard, token, through);
  }

  __device__ bool delay_pull(int token, int source) const {
    const Delays& delays = layer.delays;
    const std::uint32_t ns =
        delays.pull + (source == delays.rank ? delays.source_rank : 0) +
        (token == delays.token ? delays.one_token : 0) +
        (delays.one_expert > 0 && is_routed_to(token, delays.expert) ? delays.one_expert : 0);
    return pass(layer.guard, token, ns);
  }

  __device__ bool is_routed_to(int token, int expert) const {
    const std::int32_t* slots = layer.slots + static_cast<std::int64_t>(token) * layer.topk;
    bool routed = false;
    for (int k = 0; k < layer.topk; ++k) {
      routed = routed ||
               (slots[k] >= layer.expert_rows[expert] && slots[k] < layer.expert_rows[expert + 1]);
    }
    return routed;
  }

  // To where the GEMM reads it.
  __device__ void store(int token, const unsigned char* row) const {
    pass(layer.guard, token, layer.delays.scatter);  // if aborted, the next pull is, too
    if constexpr (Gathers) {
      start_store(layer.all_tokens + static_cast<std::int64_t>(token) * layer.hidden, row,
                  layer.row_bytes());
    } else {
      const std::int32_t* slots = layer.slots + static_cast<std::int64_t>(token) * layer.topk;
      for (int k = 0; k < layer.topk; ++k) {
        start_store(layer.gathered + static_cast<std::int64_t>(slots[k]) * layer.hidden, row,
                    layer.row_bytes());
      }
    }
    ptx::cp_async_bulk_commit_group();
    // Also orders the stores' reads of `row` before the next load into it.
    wait_stored();
  }

  __device__ void count_arrivals(int token) const {
    const std::int32_t* slots = layer.slots + static_cast<std::int64_t>(token) * layer.topk;
    // One fence and K relaxed increments: each increment then releases the row. Orders its stores before
    // the gate's acquire of the counter, and so before the GEMM's loads. A row that copy-in put in place
    // is ordered by the kernel boundary.
    if (!is_in_place(token))
      __threadfence();
    const int first = token == layer.faults.lost_arrival ? 1 : 0;
    for (int k = first; k < layer.topk; ++k) {
      GpuAtomic<std::uint32_t>(layer.arrivals[slots[k] / 128])
          .fetch_add(1, cuda::memory_order_relaxed);
    }
  }
};

}  // namespace fusescope::kernels
