#pragma once
// Row copies by the bulk copy engine (PTX ISA, "cp.async.bulk"), and the pacing that makes a fast link
// behave like a slower one.

#include <cuda/ptx>

#include <cstdint>

#include "kernels/bounded_wait.cuh"
#include "kernels/layer_args.hpp"

namespace fusescope::kernels {

namespace ptx = cuda::ptx;

// Starts a copy global -> shared (the source may be a peer's memory); `landed` completes a phase when
// all bytes are there.
__device__ inline void start_load(void* to, const void* from, std::uint32_t bytes,
                                  std::uint64_t& landed) {
  ptx::mbarrier_arrive_expect_tx(ptx::sem_relaxed, ptx::scope_cta, ptx::space_shared, &landed,
                                 bytes);
  ptx::cp_async_bulk(ptx::space_cluster, ptx::space_global, to, from, bytes, &landed);
}

// The same of what nobody reads again, without the arrival: it makes room in the L2 before anything else does.
__device__ inline void start_last_load(void* to, const void* from, std::uint32_t bytes,
                                       std::uint64_t& landed) {
  asm volatile(
      "{\n\t.reg .b64 policy;\n\t"
      "createpolicy.fractional.L2::evict_first.b64 policy;\n\t"
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint "
      "[%0], [%1], %2, [%3], policy;\n\t}" ::"r"(
          static_cast<std::uint32_t>(__cvta_generic_to_shared(to))),
      "l"(__cvta_generic_to_global(from)), "r"(bytes),
      "r"(static_cast<std::uint32_t>(__cvta_generic_to_shared(&landed)))
      : "memory");
}

__device__ inline bool wait_landed(const Guard& guard, int token, std::uint64_t& landed,
                                   std::uint32_t parity) {
  return wait_until_at_least(guard, Wait::pull, token, 1, [&]() -> std::uint64_t {
    return ptx::mbarrier_try_wait_parity(&landed, parity) ? 1 : 0;
  });
}

// For a wait that was given up: until the copy has landed after all, whatever the abort word says.
// Before that, neither its barrier nor the memory that it writes may be given to anyone else, another
// block included. A copy lands within microseconds or faults, and a fault ends the launch. One that did
// neither would write into someone else's memory one day: this ends the launch, too.
__device__ inline void drain(std::uint64_t& landed, std::uint32_t parity) {
  constexpr std::uint64_t kPatienceNs = 10'000'000'000;
  const std::uint64_t begin = now_ns();
  while (!ptx::mbarrier_try_wait_parity(&landed, parity)) {
    if (now_ns() - begin > kPatienceNs)
      __trap();
  }
}

// Gives the barrier's shared memory back for other use (PTX ISA, "mbarrier.inval").
__device__ inline void retire_barrier(std::uint64_t& barrier) {
  const auto address = static_cast<std::uint32_t>(__cvta_generic_to_shared(&barrier));
  asm volatile("mbarrier.inval.shared::cta.b64 [%0];" ::"r"(address) : "memory");
}

// Starts a copy shared -> global (the destination may be a peer's memory). The caller commits.
__device__ inline void start_store(void* to, const void* from, std::uint32_t bytes) {
  ptx::cp_async_bulk(ptx::space_global, ptx::space_shared, to, from, bytes);
}

// Until all but the last `Pending` of this thread's committed groups of stores are complete: not merely
// read from shared memory, but written. What follows publishes them, so that `.read` would be too weak.
template <int Pending = 0>
__device__ inline void wait_stored() {
  ptx::cp_async_bulk_wait_group(ptx::n32_t<Pending>());
  // The stores went through the async proxy; the release that publishes them is generic.
  ptx::fence_proxy_async(ptx::space_global);
}

// Pacing: books a row on one line of the emulated link, and returns when it would be through. [ns] Two
// plain atomics on a word of this GPU, no compare-and-swap loop: a thousand rows may be booked at once.
__device__ inline std::uint64_t book_link(const LayerArgs& layer, std::uint64_t& line_free) {
  const std::uint64_t epoch = layer.counters->link_epoch_ns;
  GpuAtomic<std::uint64_t> free(line_free);
  // A line that idled has saved up nothing.
  free.fetch_max((now_ns() - epoch) << kLinkFraction, cuda::memory_order_relaxed);
  const std::uint64_t through =
      free.fetch_add(layer.link_row_time, cuda::memory_order_relaxed) + layer.link_row_time;
  return epoch + (through >> kLinkFraction);
}

}  // namespace fusescope::kernels
