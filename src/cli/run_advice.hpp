#pragma once
// Suggestions for a run: the attribution's candidates, what a sweep's trials measured of each, and what the
// simulator expects of it on a profile of the run's machine.

#include <string>

#include "analysis/advice.hpp"
#include "timeline/timeline.hpp"

namespace fusescope::cli {

struct AdviceRequest {
  std::string timeline_file;  // names the folder in which run.json and the sweep are looked for
  std::string sweep;          // a sweep's folder; "" = the timeline's own, or that of its best/
  std::string profile;        // a name or a path; "" = by the timeline's device
};

// What cannot be asked (no sweep, no profile of this machine, a knob that the simulator does not model) is
// a note, not an error; a sweep or a profile that was named and cannot be read is one: InputError.
analysis::Advice advise_run(const AdviceRequest& request, const timeline::Timeline& timeline,
                            const analysis::Attribution& attribution);

std::string advice_text(const analysis::Advice& advice);

}  // namespace fusescope::cli
