#pragma once
// View 2, the critical path: an exact partition of the wall, from a walk back from the iteration's end.

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "timeline/timeline.hpp"

namespace fusescope::analysis {

enum class Step : std::uint8_t {
  ids_exchange, schedule_build, barrier, copy_in,
  dispatch_head,       // until the first row block opens
  dispatch_order,      // moving tokens that the waiting row block does not need yet
  dispatch_bandwidth,  // moving tokens that it needs
  gemm_1, activation, gemm_2,
  combine_wait,        // a job waits for row blocks that are not the last tiles' mainloop itself
  combine_work,        // claim, sum, and push while tiles still run
  push_drain,          // jobs and pushes after the rank's last tile
  watermark, final_reduce,
  launch_gap,
  // Serial layer.
  all_gather, scatter_rows, combine, reduce_scatter,
};
inline constexpr int kSteps = static_cast<int>(Step::reduce_scatter) + 1;
std::string_view name(Step step);      // "dispatch head"
bool is_communication(Step step);      // counts as exposed communication

struct Segment {
  std::int64_t begin_ns = 0;
  std::int64_t end_ns = 0;
  Step step = Step::launch_gap;
  std::uint32_t event = UINT32_MAX;  // the event whose time this is; UINT32_MAX in a gap
};

struct CriticalPath {
  std::vector<Segment> segments;                // contiguous, from begin to end of the wall
  std::array<std::int64_t, kSteps> by_step{};   // sums to the wall exactly
  std::array<std::int64_t, timeline::kKinds> by_kind{};  // the same time by kind of event; gaps excluded
  std::vector<std::int64_t> by_source_rank;     // pull time on the path by source rank
  std::int64_t exposed_communication_ns() const;
};

CriticalPath critical_path(const timeline::Timeline& timeline);

}  // namespace fusescope::analysis
