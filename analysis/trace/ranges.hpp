#pragma once
// What was launched inside each host range and each profiler step.

#include <cstdint>
#include <span>
#include <vector>

#include "analysis/trace/attribution.hpp"
#include "analysis/trace/launches.hpp"
#include "analysis/trace/sweep.hpp"

namespace fusescope::analysis {

bool is_profiler_step(std::string_view name);

struct RangeViews {
  std::vector<RangeRow> ranges;
  std::vector<RangeRow> steps;
};

// `exposed_ns` is the credit of each interval. A slice belongs to the ranges of the launching thread that
// were open when its call began, and to the profiler step, of any thread, that was.
RangeViews view_ranges(const timeline::Trace& trace, const Launches& launches,
                       std::span<const Interval> intervals,
                       std::span<const std::int64_t> exposed_ns);

}  // namespace fusescope::analysis
