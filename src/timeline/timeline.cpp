#include "timeline/timeline.hpp"

#include <algorithm>
#include <tuple>

namespace fusescope::timeline {

std::string_view name(Provenance provenance) {
  return provenance == Provenance::measured ? "measured" : "simulated";
}

void sort_events(Timeline& timeline) {
  std::sort(timeline.events.begin(), timeline.events.end(), [](const Event& a, const Event& b) {
    return std::tuple(a.track, a.begin_ns, -a.end_ns) < std::tuple(b.track, b.begin_ns, -b.end_ns);
  });
}

}  // namespace fusescope::timeline
