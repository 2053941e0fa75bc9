#pragma once
// Ranges for tools that listen to NVTX (Nsight Systems, CUPTI): domain "fusescope", a category per level,
// and a number as payload. Where nobody listens, a range is a few instructions.

#include <cstdint>

namespace fusescope::timeline {

enum class RangeLevel : std::uint32_t {
  run = 1,    // payload: 0
  iteration,  // payload: its number, counted over the run
  step,       // payload: the device; the host's part of one step: its launches, or their capture
  check,      // outputs against the reference; payload: 0
};

// From its making to its end, on one thread; ranges of a thread nest.
class NvtxRange {
 public:
  // `name` is copied by whoever listens.
  NvtxRange(RangeLevel level, const char* name, std::int64_t payload = 0);
  ~NvtxRange();
  NvtxRange(const NvtxRange&) = delete;
  NvtxRange& operator=(const NvtxRange&) = delete;
};

}  // namespace fusescope::timeline
