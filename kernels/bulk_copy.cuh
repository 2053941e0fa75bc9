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

__device__ inline bool wait_landed(const Guard& guard, int token, std::uint64_t& landed,
                                   std::uint32_t parity) {
  return wait_until_at_least(guard, Wait::pull, token, 1, [&]() -> std::uint64_t {
    return ptx::mbarrier_try_wait_parity(&landed, parity) ? 1 : 0;
  });
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

// Pacing: books `bytes` on the emulated link and returns when they would be through. [ns] Two plain
// atomics, no compare-and-swap loop: a thousand rows may be booked at once.
__device__ inline std::uint64_t book_link(std::uint64_t& link_free_ns, std::uint32_t bytes,
                                          double ns_per_byte) {
  const auto cost = static_cast<std::uint64_t>(static_cast<double>(bytes) * ns_per_byte);
  GpuAtomic<std::uint64_t> link(link_free_ns);
  link.fetch_max(now_ns(), cuda::memory_order_relaxed);  // a link that idled has saved up nothing
  return link.fetch_add(cost, cuda::memory_order_relaxed) + cost;
}

}  // namespace fusescope::kernels
