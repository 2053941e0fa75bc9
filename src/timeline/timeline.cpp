#include "timeline/timeline.hpp"

#include <algorithm>
#include <tuple>

namespace fusescope::timeline {

std::string_view name(Provenance provenance) {
  return provenance == Provenance::measured ? "measured" : "simulated";
}

bool before(const Event& a, const Event& b) {
  return std::tuple(a.track, a.begin_ns, b.end_ns, a.kind) <
         std::tuple(b.track, b.begin_ns, a.end_ns, b.kind);
}

void sort_events(Timeline& timeline) {
  std::sort(timeline.events.begin(), timeline.events.end(),
            [](const Event& a, const Event& b) { return before(a, b); });
}

}  // namespace fusescope::timeline
