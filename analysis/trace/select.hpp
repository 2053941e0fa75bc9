#pragma once
// From a trace to the intervals that the accounting takes: which slices count, with which times, on
// which device.

#include <cstdint>
#include <vector>

#include "analysis/trace/rules.hpp"
#include "analysis/trace/sweep.hpp"

namespace fusescope::analysis {

struct DeviceSlices {
  std::int64_t process = 0;
  std::int64_t device = 0;
  std::vector<Interval> intervals;  // by begin; classes that never count are left out
  std::int64_t begin_ns = 0;        // first begin and last end, of slices left out too
  std::int64_t end_ns = 0;
};

// Ordered by process and device. Devices without slices do not appear.
std::vector<DeviceSlices> select_slices(const timeline::Trace& trace, const Rules& rules);

}  // namespace fusescope::analysis
