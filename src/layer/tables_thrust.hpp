#pragma once
// The vectorised builder of the schedule tables, one source for every Thrust system. Include it
// where one system is instantiated (tables_thrust_cpp.cpp, tables_thrust_omp.cpp,
// tables_device.cu); everyone else calls build_tables_thrust (tables.hpp) or build_tables_on_stream
// (tables_device.hpp).
//
// One stable argsort of the hits by expert; the rest is scatter, scan and per-element work. Every
// size is fixed by the shape, nothing is read back to the host, and memory comes from the caller,
// so that a CUDA policy can be captured in a graph.

#include <thrust/for_each.h>
#include <thrust/iterator/counting_iterator.h>
#include <thrust/scan.h>

#include <cstddef>
#include <cstdint>

#include "layer/tables_device.hpp"

#ifdef __CUDACC__
#define FUSESCOPE_BOTH_SIDES __host__ __device__
#else
#define FUSESCOPE_BOTH_SIDES
#endif

namespace fusescope::tables_thrust {

// What every step needs; travels by value.
struct Arrays {
  TableSizes sizes;
  SlotOrder slot_order;
  std::int32_t rank;
  const std::int32_t* experts;  // [R*T, K]
  TablePointers out;
  // workspace
  std::uint64_t* marks;     // [max rows] bit 0: a token's smallest slot, bit 32: its largest;
                            // after the scan, how many of each lie before
  std::int32_t* sorted;     // [hits] the hits by (expert, position)
  std::int32_t* first_hit;  // [E+1] where an expert begins in `sorted`
  std::uint32_t* key;       // [hits] expert of each sorted hit
};

constexpr std::size_t kAlignment = 256;  // [bytes]

// Gives `bytes` of the workspace away, or only counts them when there is none yet.
class Carver {
 public:
  explicit Carver(void* base) : base_(static_cast<char*>(base)) {}
  template <typename T>
  T* take(std::size_t count) {
    char* const begin = base_ == nullptr ? nullptr : base_ + used_;
    used_ += (count * sizeof(T) + kAlignment - 1) / kAlignment * kAlignment;
    return reinterpret_cast<T*>(begin);
  }
  std::size_t used() const { return used_; }

 private:
  char* base_;
  std::size_t used_ = 0;
};

inline std::size_t carve(Arrays& arrays, void* workspace) {
  const std::size_t hits = arrays.sizes.hits();
  Carver carver(workspace);
  arrays.marks = carver.take<std::uint64_t>(arrays.sizes.max_rows());
  arrays.sorted = carver.take<std::int32_t>(hits);
  arrays.first_hit = carver.take<std::int32_t>(arrays.sizes.experts + 1);
  arrays.key = carver.take<std::uint32_t>(hits);
  return carver.used();
}

// Hits in the order in which they lie within an expert: position -> hit, by whole tokens. After a
// wait for the ids was given up, the build runs on whatever the buffer holds: an id that is no
// expert's counts as the last expert's, so that every index that follows is in bounds. The tables of
// any ids at all place each hit in a row of its own.
struct GatherKeys {
  Arrays a;
  FUSESCOPE_BOTH_SIDES void operator()(std::int32_t position) const {
    const TableSizes& s = a.sizes;
    const std::int32_t place = position / s.topk;
    std::int32_t token = place;
    if (a.slot_order == SlotOrder::interleave_sources) {
      token = place % s.ranks * s.tokens_per_rank + place / s.ranks;
    } else if (a.slot_order == SlotOrder::rotate_from_self) {
      token = (place + a.rank * s.tokens_per_rank) % s.tokens();
    }
    const std::int32_t hit = token * s.topk + position % s.topk;
    a.sorted[position] = hit;
    const auto id = static_cast<std::uint32_t>(a.experts[hit]);
    const auto last = static_cast<std::uint32_t>(s.experts - 1);
    a.key[position] = id < last ? id : last;
  }
};

struct FindFirstHits {
  Arrays a;
  FUSESCOPE_BOTH_SIDES void operator()(std::int32_t expert) const {
    std::int32_t low = 0;
    std::int32_t high = a.sizes.hits();
    while (low < high) {
      const std::int32_t middle = low + (high - low) / 2;
      if (a.key[middle] < static_cast<std::uint32_t>(expert)) {
        low = middle + 1;
      } else {
        high = middle;
      }
    }
    a.first_hit[expert] = low;
  }
};

struct PadExperts {
  Arrays a;
  FUSESCOPE_BOTH_SIDES void operator()(std::int32_t expert) const {
    std::int32_t rows = 0;
    if (expert < a.sizes.experts) {
      rows = a.first_hit[expert + 1] - a.first_hit[expert];
    }
    a.out.expert_rows[expert] = (rows + kRowBlock - 1) / kRowBlock * kRowBlock;
  }
};

struct ScatterSlots {
  Arrays a;
  FUSESCOPE_BOTH_SIDES void operator()(std::int32_t index) const {
    const auto expert = static_cast<std::int32_t>(a.key[index]);
    const std::int32_t hit = a.sorted[index];
    const std::int32_t slot = a.out.expert_rows[expert] + index - a.first_hit[expert];
    a.out.slots[hit] = slot;
    a.out.token_of_slot[slot] = hit / a.sizes.topk;
  }
};

struct ClearMarks {
  Arrays a;
  FUSESCOPE_BOTH_SIDES void operator()(std::int32_t row) const { a.marks[row] = 0; }
};

struct SlotRange {
  std::int32_t smallest;
  std::int32_t largest;
};

FUSESCOPE_BOTH_SIDES inline SlotRange slot_range(const Arrays& a, std::int32_t token) {
  const std::int32_t* const slots = a.out.slots + static_cast<std::ptrdiff_t>(token) * a.sizes.topk;
  SlotRange range{slots[0], slots[0]};
  for (std::int32_t k = 1; k < a.sizes.topk; ++k) {
    range.smallest = slots[k] < range.smallest ? slots[k] : range.smallest;
    range.largest = slots[k] > range.largest ? slots[k] : range.largest;
  }
  return range;
}

constexpr std::uint64_t kSmallestMark = 1;
constexpr std::uint64_t kLargestMark = std::uint64_t{1} << 32;

// No two tokens mark one slot; with K = 1 one token marks one slot twice.
struct MarkRanges {
  Arrays a;
  FUSESCOPE_BOTH_SIDES void operator()(std::int32_t token) const {
    const SlotRange range = slot_range(a, token);
    a.marks[range.smallest] += kSmallestMark;
    a.marks[range.largest] += kLargestMark;
  }
};

// After the scan, a slot's mark counts the smallest (low half) and largest (high half) slots before
// it.
struct PlaceTokens {
  Arrays a;
  FUSESCOPE_BOTH_SIDES void operator()(std::int32_t token) const {
    const SlotRange range = slot_range(a, token);
    a.out.pull_order[static_cast<std::uint32_t>(a.marks[range.smallest])] = token;
    a.out.job_order[a.marks[range.largest] >> 32] = token;
  }
};

struct FillRowBlocks {
  Arrays a;
  FUSESCOPE_BOTH_SIDES void operator()(std::int32_t block) const {
    const std::int32_t row = block * kRowBlock;
    std::int32_t expert = -1;
    std::int32_t slack = kRowBlock;  // beyond the real blocks: as if full
    if (row < a.out.expert_rows[a.sizes.experts]) {
      std::int32_t low = 0;  // the last expert that starts at or before `row`
      std::int32_t high = a.sizes.experts;
      while (high - low > 1) {
        const std::int32_t middle = low + (high - low) / 2;
        if (a.out.expert_rows[middle] <= row) {
          low = middle;
        } else {
          high = middle;
        }
      }
      expert = low;
      const std::int32_t end =
          a.out.expert_rows[expert] + a.first_hit[expert + 1] - a.first_hit[expert];
      const std::int32_t filled = end - row;
      slack = filled < kRowBlock ? kRowBlock - filled : 0;
    }
    a.out.slack[block] = slack;
    for (std::int32_t i = kRowBlock - slack; i < kRowBlock; ++i) {
      a.out.token_of_slot[row + i] = a.rank * a.sizes.tokens_per_rank;
    }
    if (a.out.row_block_experts != nullptr) {
      a.out.row_block_experts[block] = expert;
    }
  }
};

// All pointers are in the policy's memory; `workspace` has at least carve()'s bytes. Work that
// Thrust allocates for itself comes from the policy's allocator. `sort(arrays)` sorts the pairs of `key`
// and `sorted` by key, stably; it may leave them in other arrays, and the pointers there.
template <typename Policy, typename Sort>
void build(const Policy& policy, const TableSizes& sizes, const std::int32_t* experts,
           SlotOrder slot_order, int rank, const TablePointers& out, void* workspace, Sort sort) {
  Arrays a{sizes, slot_order, rank, experts, out, nullptr, nullptr, nullptr, nullptr};
  carve(a, workspace);
  const thrust::counting_iterator<std::int32_t> zero(0);
  const std::int32_t hits = sizes.hits();
  const std::int32_t entries = sizes.experts + 1;

  thrust::for_each_n(policy, zero, hits, GatherKeys{a});
  sort(a);
  thrust::for_each_n(policy, zero, entries, FindFirstHits{a});
  thrust::for_each_n(policy, zero, entries, PadExperts{a});
  thrust::exclusive_scan(policy, out.expert_rows, out.expert_rows + entries, out.expert_rows);
  thrust::for_each_n(policy, zero, hits, ScatterSlots{a});

  const std::int32_t rows = sizes.max_rows();
  thrust::for_each_n(policy, zero, rows, ClearMarks{a});
  thrust::for_each_n(policy, zero, sizes.tokens(), MarkRanges{a});
  thrust::exclusive_scan(policy, a.marks, a.marks + rows, a.marks);
  thrust::for_each_n(policy, zero, sizes.tokens(), PlaceTokens{a});

  thrust::for_each_n(policy, zero, sizes.max_row_blocks(), FillRowBlocks{a});
}

}  // namespace fusescope::tables_thrust
