#pragma once
// What the page's scripts read: JSON for charts and heatmap, a packed form for the block timeline.

#include <string>

#include "reports/findings.hpp"
#include "reports/report.hpp"

namespace fusescope::reports {

// Safe to stand inside a <script> element: no '<' appears in it.
std::string chart_json(const ReportInput& input, const Findings& findings);

// The timeline for assets/timeline_data.js, which documents the same layout:
//   head   JSON: wall, names, tracks, and the length of each column below
//   bytes  base64 of the columns, each a run of LEB128 varints (zigzag where a value can be
//   negative)
// Event columns, in (track, begin) order: begin as the distance from the event before on the same
// track, duration, kind, and token, row block, index as differences from the event before on the
// same track, peer + 1. Gate columns, one entry for each gate wait in that order: last token + 1,
// source rank + 1, blame. Path columns, one entry a segment: duration, step, event + 1 (0: a gap).
struct PackedTimeline {
  std::string head;
  std::string bytes;
};
PackedTimeline pack(const ChosenRun& run);

}  // namespace fusescope::reports
