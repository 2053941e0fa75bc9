#pragma once
// The device's waits. Each polls a word that only grows until it reaches what is expected, and ends
// in one of three ways: reached; out of time, with a diagnosis and the abort words of all ranks
// raised; or because some other wait raised this rank's abort word. Only the first returns true. A
// caller that gets false leaves its role; it must still meet the barriers that its block's other
// threads expect.

#include <cuda/atomic>
#include <cuda/ptx>

#include <cstdint>

#include "kernels/guard.hpp"

namespace fusescope::kernels {

__device__ inline std::uint64_t now_ns() {
  std::uint64_t ns;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(ns)::"memory");
  return ns;
}

template <class T>
using GpuAtomic = cuda::atomic_ref<T, cuda::thread_scope_device>;
template <class T>
using SystemAtomic = cuda::atomic_ref<T, cuda::thread_scope_system>;

__device__ inline bool aborted(const Guard& guard) {
  return SystemAtomic<std::uint32_t>(*guard.abort_words[guard.rank])
             .load(cuda::memory_order_relaxed) != 0;
}

__device__ inline void give_up(const Guard& guard, Wait what, int index, std::uint64_t expected,
                               std::uint64_t seen, std::uint64_t waited_ns) {
  if (GpuAtomic<std::uint32_t>(*guard.claimed).exchange(1, cuda::memory_order_relaxed) == 0) {
    Diagnosis& record = *guard.diagnosis;
    record.rank = guard.rank;
    record.block = static_cast<std::int32_t>(blockIdx.x);
    record.what = what;
    record.index = index;
    record.expected = expected;
    record.seen = seen;
    record.waited_ns = waited_ns;
    // Orders the record's stores to host memory before the word that makes it valid.
    SystemAtomic<std::uint32_t>(record.valid).store(1, cuda::memory_order_release);
  }
  // Raising is idempotent, so that several writers of one abort word do no harm: the one exception
  // to "one writer per flag".
  for (int r = 0; r < guard.ranks; ++r)
    SystemAtomic<std::uint32_t>(*guard.abort_words[r]).store(1, cuda::memory_order_relaxed);
}

// `read` returns the word's current value with the ordering that the caller needs (an acquire of
// the scope at which the writer releases).
template <class Read>
__device__ inline bool wait_until_at_least(const Guard& guard, Wait what, int index,
                                           std::uint64_t expected, Read read) {
  std::uint64_t seen = read();
  if (seen >= expected)
    return true;
  constexpr unsigned kPollsPerLook = 16;  // at the abort word and the clock
  const std::uint64_t begin = now_ns();
  for (unsigned polls = 1;; ++polls) {
    seen = read();
    if (seen >= expected)
      return true;
    if (polls % kPollsPerLook != 0)
      continue;
    if (aborted(guard))
      return false;
    const std::uint64_t waited = now_ns() - begin;
    if (waited > guard.deadline_ns) {
      give_up(guard, what, index, expected, seen, waited);
      return false;
    }
  }
}

// A counter of this GPU. Its writers release at gpu scope.
__device__ inline bool wait_for_counter(const Guard& guard, Wait what, int index,
                                        std::uint32_t& counter, std::uint32_t expected) {
  return wait_until_at_least(guard, what, index, expected, [&]() -> std::uint64_t {
    return GpuAtomic<std::uint32_t>(counter).load(cuda::memory_order_acquire);
  });
}

// A flag that another GPU raises. Its one writer releases at system scope.
__device__ inline bool wait_for_flag(const Guard& guard, Wait what, int index, std::uint64_t& flag,
                                     std::uint64_t expected) {
  return wait_until_at_least(guard, what, index, expected, [&]() -> std::uint64_t {
    return SystemAtomic<std::uint64_t>(flag).load(cuda::memory_order_acquire);
  });
}

__device__ inline void raise_flag(std::uint64_t& flag, std::uint64_t value) {
  SystemAtomic<std::uint64_t>(flag).store(value, cuda::memory_order_release);
}

// Until the clock says `ns`: injected delays and pacing. Bounded like any other wait; which delays and
// caps stay far below the deadline is a rule for the host.
__device__ inline bool wait_for_clock(const Guard& guard, int index, std::uint64_t ns) {
  return wait_until_at_least(guard, Wait::clock, index, ns, [] { return now_ns(); });
}

__device__ inline bool pass(const Guard& guard, int index, std::uint32_t delay_ns) {
  return delay_ns == 0 || wait_for_clock(guard, index, now_ns() + delay_ns);
}

}  // namespace fusescope::kernels
