#pragma once
// One pass over the slices of a device in time order: at every moment, which slice of each class began
// first among those that run. Everything that must add up to the span is built on it.

#include <array>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "analysis/trace/rules.hpp"

namespace fusescope::analysis {

// A slice as the accounting takes it: times may be rounded, what does not count is left out.
struct Interval {
  std::int64_t begin_ns = 0;
  std::int64_t end_ns = 0;
  std::uint32_t slice = 0;  // in Trace::gpu
  WorkClass work = WorkClass::compute;
};

inline constexpr std::uint32_t kNoSlice = 0xffffffff;

// A stretch of time in which the same slices run.
struct Stretch {
  std::int64_t begin_ns = 0;
  std::int64_t end_ns = 0;
  std::array<std::uint32_t, kWorkClasses> first;  // per class: index into intervals, or kNoSlice
  std::uint32_t next = kNoSlice;                  // the next interval that begins, or kNoSlice
  std::int64_t length() const { return end_ns - begin_ns; }
  bool runs(WorkClass work) const { return first[static_cast<std::size_t>(work)] != kNoSlice; }
  std::uint32_t of(WorkClass work) const { return first[static_cast<std::size_t>(work)]; }
};

// `intervals` by begin. Calls `visit` for stretches that tile first begin to last end without a gap.
// n log n in the number of intervals, however they overlap.
void sweep(std::span<const Interval> intervals, const std::function<void(const Stretch&)>& visit);

}  // namespace fusescope::analysis
