#pragma once
// The attribution of one timeline, bundled, ranked and put in words: what `attribute`, the trial
// log and the report print.

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "analysis/accounting.hpp"
#include "analysis/critical_path.hpp"
#include "analysis/exposure.hpp"
#include "analysis/link_load.hpp"
#include "analysis/wait_table.hpp"
#include "timeline/timeline.hpp"

namespace fusescope::analysis {

// One step of the layer, its time on the critical path, and why.
struct Finding {
  Step step = Step::launch_gap;
  std::int64_t ns = 0;
  std::int64_t exposed_ns = 0;
  double share = 0;  // of the wall
  std::string
      reason;  // a sentence with its numbers; "" where the name says it all (GEMMs, activation)
};

struct Attribution {
  // Why nothing is attributed: the timeline is empty or has lost records. Everything else is then
  // empty.
  std::string refusal;
  // What weakens the result without spoiling it: clock bound, causes that are not on record.
  std::vector<std::string> caveats;
  std::int64_t wall_ns = 0;
  std::int64_t exposed_ns = 0;    // by critical path
  std::string headline;           // "Dispatch head exposes 118 us (9.1% of the wall): ..."
  std::vector<Finding> findings;  // steps on the path, most exposed first, then longest first
  CriticalPath path;
  Accounting accounting;
  WaitTable waits;
  LinkLoad pulls;   // by the rank that they come from
  LinkLoad pushes;  // by the rank that they go to
  // By every view. attribute() knows no rungs; who has some states it anew with state_exposure().
  Exposure exposure;
};

// The timeline is taken to satisfy timeline::check(); readers of foreign files call it first.
Attribution attribute(const timeline::Timeline& timeline);

// The trial log's form: step name -> us, steps that are on the path only. Sums to the wall.
std::map<std::string, double> steps_us(const CriticalPath& path);

// The `--json` form. `rows` bounds each list (segments are left out; gates, tokens, edges are
// longest first).
std::string to_json(const Attribution& attribution, const timeline::Timeline& timeline,
                    int rows = 20);

}  // namespace fusescope::analysis
