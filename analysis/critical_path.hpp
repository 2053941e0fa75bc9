#pragma once
// View 2, the critical path: an exact partition of the wall, from a walk back from the iteration's
// end.
//
// The walk. It starts at the stream phase that ends last over all ranks. At each event it goes to the
// binding predecessor, the one that ended last:
//   work               the event before it on its track (the token slots of a block have a track each and
//                      wait for none of the others)
//   gate_wait          the arrive that opened the row block, if that was counted after the wait began; so
//                      for ready_wait (the epilogue that completed the token's last row block) and
//                      reduce_wait (the sender's watermark); else the event before it on its track
//   claim              with all hands, before the rank's last tile of GEMM 2 ended: what the compute block
//                      of that tile was doing, in a mainloop or an epilogue. A job in the dispenser goes to
//                      whoever is free first, so it was not taken earlier because those hands were missing;
//                      which block ends up with the last job is chance. Else the event before it on its track
//   push, sum          of a warpgroup whose pushes run beside its sums: as Dependencies has the order of its
//                      threads. A push that was complete when the next one had been issued: that issue, and so
//                      from there to its end it is the push's time; a push or sum that a push holds up: that
//                      push, from its issue on
//   barrier, ids_exchange, all_gather, reduce_scatter
//                      the rank that entered last, at the time it entered
//   a kernel's phase   the event that ended last on its blocks' tracks
//   a track's first    the kernel's begin; for a block that began after another block of its kernel had
//                      ended (short-lived blocks) the last one to end before, since it freed the SM; where
//                      kernels overlap, the block of the kernel before if that ended later still
//   a phase's begin    the phase before it on its stream
// The time from the predecessor's end to the event's end is the event's. What is between an event's begin
// and its predecessor's end is idle time on its track and counts to the same step.
//
// A predecessor that seems to end after its effect (clocks of two ranks agree only to clock_bound) is
// taken to end with it; an event is visited at most once, so the walk ends; what it cannot reach is a
// launch gap. The partition is exact on every timeline.
//
// What a critical path cannot see: work that is slower because communication runs beside it, and SMs that
// communication takes from the GEMMs. Both lengthen gemm_1 and gemm_2 here; only the counterfactual rungs
// tell them apart.

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "timeline/dependencies.hpp"
#include "timeline/timeline.hpp"

namespace fusescope::analysis {

// A token is needed by the waiting row block when one of its hits lies in that row block or in an
// earlier one (slot order is the order in which the GEMM wants them).
enum class Step : std::uint8_t {
  ids_exchange,
  schedule_build,
  barrier,
  copy_in,
  dispatch_head,   // kernel 1 before the rank's first tile starts: moving tokens that are needed,
                   // and seeing that they landed
  dispatch_order,  // at any time: moving tokens that the waiting row block does not need yet
  dispatch_bandwidth,  // after the first tile started: moving tokens that it needs, and seeing them
  gemm_1,
  activation,
  gemm_2,
  combine_wait,  // a job sees late that its row blocks are complete (the tiles themselves are
                 // gemm_2)
  combine_work,  // claim, sum, push, elect while the rank's tiles still run
  push_drain,    // the same after the end of the rank's last tile of GEMM 2
  watermark,     // raising a watermark, and seeing it at the receiver
  final_reduce,  // summing the planes
  launch_gap,    // between two phases, between a kernel's begin and its block's, dispenser reset
  // Serial layer.
  all_gather,
  scatter_rows,
  combine,
  reduce_scatter,
};
inline constexpr int kSteps = static_cast<int>(Step::reduce_scatter) + 1;
std::string_view name(Step step);  // "dispatch head"

// Exposed communication: wall time that would vanish if communication took no time. It counts
//   - whole: ids exchange, barrier, copy-in (only peers read the copy), watermark, final reduce (one plane
//     needs no sum), and the serial layer's all-gather, row scatter and reduce-scatter. The row scatter
//     counts in both forms: the fused layer does it as part of the dispatch.
//   - of dispatch head, order and bandwidth what passes while the block at the gate waits. What passes
//     while that block computes its earlier tiles is on the path, but hidden: those tiles would bound the
//     wall if the tokens had come at once.
//   - of push drain only push and elect: claim and sum are the weighted sum over k, which a layer on one
//     GPU needs just as well (the serial layer's `combine`).
//   - never: schedule build, GEMMs, activation, combine wait, combine work (tiles run meanwhile), launch
//     gaps, the serial layer's combine.
// is_communication(step): the step is communication, whole but for what is hidden as above.
// may_communicate(step): whole or in part.
bool is_communication(Step step);
bool may_communicate(Step step);

struct Segment {
  std::int64_t begin_ns = 0;
  std::int64_t end_ns = 0;
  Step step = Step::launch_gap;
  bool exposed = false;                 // counts as exposed communication
  std::int16_t rank = -1;               // whose track; -1 where the walk knows none
  std::int32_t waiting_row_block = -1;  // dispatch steps: for which row block this was on the path
  std::uint32_t event = UINT32_MAX;     // the event whose time this is; UINT32_MAX in a gap
};

struct TokenTime {
  int token = -1;
  std::int64_t ns = 0;
};

struct CriticalPath {
  std::vector<Segment> segments;               // contiguous, from begin to end of the wall
  std::array<std::int64_t, kSteps> by_step{};  // sums to the wall exactly
  std::array<std::int64_t, kSteps>
      exposed_by_step{};  // the part of it that is exposed communication
  std::array<std::int64_t, timeline::kKinds>
      by_kind{};                             // the same time by kind of event; gaps excluded
  std::vector<std::int64_t> by_source_rank;  // pull time on the path by source rank
  std::vector<std::int64_t> by_rank;         // path time by the rank it was spent on
  std::vector<TokenTime> by_token;           // events that name a token; longest first
  std::int64_t unexplained_ns = 0;  // reached only by giving up (see above); 0 on a whole timeline
  int causes_missing = 0;           // waits on the path whose cause is not on record
  std::int64_t exposed_communication_ns() const;
};

CriticalPath critical_path(const timeline::Dependencies& dependencies);
CriticalPath critical_path(const timeline::Timeline& timeline);

}  // namespace fusescope::analysis
