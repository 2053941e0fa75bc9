// Shared memory of one compute block: the ring of operand stages, the staged output chunks, and the
// barriers and headers behind them. A view over the caller's dynamic shared memory, not an object
// in it: nothing here owns anything.
#pragma once

#include <cuda/ptx>

#include <cstdint>
#include <type_traits>

#include "gemm_tile_order.hpp"
#include "gemm_variants.hpp"

namespace fusescope::kernels {

namespace ptx = cuda::ptx;

// Which tile a stage (or a staged chunk) belongs to. Two words: the consumers have no register for a
// third.
struct TileHeader {
  std::int32_t row_block;  // kStop ends the loop
  std::int32_t place;      // N tile; in the last 9 bits, rows of the tile that hold something

  __device__ static TileHeader of(const TileJob& job) {
    return {job.row_block, job.n_tile << 9 | job.rows};
  }
  __device__ int n_tile() const { return place >> 9; }
  __device__ int rows() const { return place & 0x1ff; }
  __device__ int halves() const { return halves_of(rows()); }
};
inline constexpr std::int32_t kStop = -1;

inline constexpr int kJoinSlots = 16;  // see store_tiles in gemm_storer.cuh

// Rows that a warp gathers with one instruction, eight lanes each, and the words of row_at for the rows
// of one lane: four more than there are, so that the four lanes' words lie in different banks.
inline constexpr int kRowsAtOnce = 4;

// Variants that gather (gemm_gather.cuh): `landed` completes when a stage's rows are there; where the rows of the
// producer's tile lie.
template <GemmVariant V>
struct GatherControl {
  std::uint64_t landed[V.stages];
  alignas(16) std::uint32_t row_at[kRowsAtOnce][most_rows(V) / kRowsAtOnce + 4];
};

// Transposed variants: what the row tiles of an expert are not counted by, a bit for each expert, and how many
// bits lie in the words before (gemm_schedule.cuh).
struct ExpertBits {
  std::uint32_t words[kMostTransposedExperts / 32 + 1];
  std::uint16_t before[kMostTransposedExperts / 32 + 1];

  __device__ int count_before(int expert) const {
    return before[expert / 32] + __popc(words[expert / 32] & ((1u << expert % 32) - 1));
  }
};

struct ExpertControl {
  ExpertBits odd;     // with an odd number of row blocks
  ExpertBits merged;  // whose last row block goes with the tile before it
};

template <int>
struct NoControl {};

template <GemmVariant V>
struct VariantControl : std::conditional_t<V.gathers, GatherControl<V>, NoControl<0>>,
                        std::conditional_t<V.transposed, ExpertControl, NoControl<1>> {};

// What the scheduler has found (gemm_scheduler.cuh).
struct NextTile {
  TileJob job;   // row_block kStop: no more
  bool is_open;  // its gate
};

template <GemmVariant V>
struct GemmControl : VariantControl<V> {
  // The ring. `full` completes when a stage's bytes have landed, `empty` when all consumer warps have read it
  // and, where it lent room to output, that has been copied out.
  std::uint64_t full[V.stages];
  std::uint64_t empty[V.stages];
  // Staged output. `staged` completes when a chunk is written to shared memory, `drained` when the
  // copy engine has read it.
  std::uint64_t staged[kConsumerGroups][all_chunks(V)];
  std::uint64_t drained[kConsumerGroups][all_chunks(V)];
  // Completes when the consumers have done what comes before their first tile (Gate::prepare).
  std::uint64_t prepared;
  // From scheduler to producer, and back.
  std::uint64_t found;
  std::uint64_t asked;
  NextTile next;
  bool gave_up;  // by the producer, for the scheduler: a gate's wait was
  TileHeader stage_tile[V.stages];
  TileHeader chunk_tile[kConsumerGroups][all_chunks(V)];
  std::int32_t lender[kConsumerGroups][all_chunks(V)];  // the last stage of the chunk's tile
  std::uint32_t halves_stored[kJoinSlots];
};

template <GemmVariant V>
struct GemmSmem {
  static_assert(sizeof(GemmControl<V>) <= control_bytes(V));

  unsigned char* base;  // 1024-byte aligned: the 128-byte swizzle repeats every 1024 bytes

  __device__ unsigned char* a_stage(int stage) const { return base + stage * a_stage_bytes(V); }
  __device__ unsigned char* b_stage(int stage) const {
    return base + V.stages * a_stage_bytes(V) + stage * b_stage_bytes(V);
  }
  // wgmma: what one warpgroup alone reads of a stage. Transposed: of gate, and (part 1) of up, where they come in
  // two boxes.
  __device__ unsigned char* own(int stage, int group, int part = 0) const {
    if constexpr (V.transposed) {
      constexpr int kPartBytes = own_stage_bytes(V) / b_boxes(V);
      return b_stage(stage) + (part * kConsumerGroups + group) * kPartBytes;
    } else {
      return a_stage(stage) + group * own_stage_bytes(V);
    }
  }
  // The staged chunk of this number. Lent ones come first: they lie in `lender`, the last stage of their tile.
  __device__ unsigned char* chunk(int consumer, int number, int lender = 0) const {
    constexpr int kLent = lent_chunks(V);
    if constexpr (kLent > 0) {
      constexpr int kInPart = V.transposed ? kLent / b_boxes(V) : kLent;
      if (number < kLent)
        return own(lender, consumer, number / kInPart) + number % kInPart * staged_chunk_bytes(V);
    }
    return base + ring_bytes(V) +
           (consumer * staged_chunks(V) + number - kLent) * staged_chunk_bytes(V);
  }
  __device__ GemmControl<V>& control() const {
    return *reinterpret_cast<GemmControl<V>*>(base + reusable_bytes(V));
  }
};

// Position in a ring of `Depth` slots. Parity of the slot's current use: 0, 1, 0, ...
template <int Depth>
struct RingCursor {
  int slot = 0;
  std::uint32_t parity = 0;

  __device__ void advance() {
    if (++slot == Depth) {
      slot = 0;
      parity ^= 1;
    }
  }
};

// Waits inside a block need no deadline of their own: each of them ends because the producer's gate
// wait ends. Tests compile with FUSESCOPE_GEMM_WATCHDOG, which turns a wait that a bug made endless
// into a launch failure.
template <class Condition>
__device__ inline void spin_until(Condition condition) {
#ifdef FUSESCOPE_GEMM_WATCHDOG
  constexpr long long kPatience = 6'000'000'000;  // [SM cycles], about 3 s
  const long long start = clock64();
  while (!condition()) {
    if (clock64() - start > kPatience)
      __trap();
  }
#else
  while (!condition()) {
  }
#endif
}

// Waits until the barrier's phase of this parity has completed.
__device__ inline void wait_phase(std::uint64_t& barrier, std::uint32_t parity) {
  spin_until([&] { return ptx::mbarrier_try_wait_parity(&barrier, parity); });
}

// A slot that has never been used counts as free: the wait for the phase before the first succeeds.
__device__ inline void wait_free(std::uint64_t& barrier, std::uint32_t parity) {
  wait_phase(barrier, parity ^ 1);
}

__device__ inline bool is_free(std::uint64_t& barrier, std::uint32_t parity) {
  return ptx::mbarrier_test_wait_parity(&barrier, parity ^ 1);
}

__device__ inline void arrive(std::uint64_t& barrier, std::uint32_t count = 1) {
  ptx::mbarrier_arrive(ptx::sem_release, ptx::scope_cta, ptx::space_shared, &barrier, count);
}

template <GemmVariant V>
__device__ inline void init_control(GemmControl<V>& control) {
  // wgmma: a warpgroup for each half, which writes all of that half's chunks. mma.sync: four warps in all,
  // and those write a chunk whose columns it holds.
  constexpr bool kMma = V.mainloop == Mainloop::kMma;
  constexpr std::uint32_t kWarps = kMma ? 4 : kWarpsPerConsumer * kConsumerGroups;
  constexpr std::uint32_t kWarpsPerChunk = kMma ? kWarps / staged_chunks(V) : kWarpsPerConsumer;
  constexpr std::uint32_t kGatheredArrivals = 33;  // the copies of each lane, and the first lane
  for (int i = 0; i < V.stages; ++i) {
    ptx::mbarrier_init(&control.full[i], 1);
    if constexpr (V.gathers)
      ptx::mbarrier_init(&control.landed[i], kGatheredArrivals);
    ptx::mbarrier_init(&control.empty[i], kWarps);
  }
  for (int i = 0; i < kConsumerGroups; ++i) {
    for (int j = 0; j < all_chunks(V); ++j) {
      ptx::mbarrier_init(&control.staged[i][j], kWarpsPerChunk);
      ptx::mbarrier_init(&control.drained[i][j], 1);
    }
  }
  ptx::mbarrier_init(&control.prepared, kWarps);
  ptx::mbarrier_init(&control.found, 1);
  ptx::mbarrier_init(&control.asked, 1);
  control.gave_up = false;
  for (std::uint32_t& halves : control.halves_stored)
    halves = 0;
  // Initialised by generic stores, used next by other threads and by the copy engine's
  // complete_tx: this fence and the block's barrier after it order the two.
  ptx::fence_mbarrier_init(ptx::sem_release, ptx::scope_cluster);
}

}  // namespace fusescope::kernels
