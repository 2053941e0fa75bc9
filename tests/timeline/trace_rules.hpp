#pragma once
// What must hold of every file that viewers open, whatever timeline it is of. Failures are
// GoogleTest's.

#include "timeline/timeline.hpp"

namespace fusescope::timeline {

// Track uuids are unique, every event's track was declared before it, slices nest per track and are
// those of the timeline, times do not go back on a track, every flow has a source, an end and no
// step before the last, counters are those of the timeline.
void expect_perfetto_rules(const Timeline& timeline);

// The JSON parses; rows are named; slices of a row nest or do not overlap and are those of the
// timeline; every flow has one s, one f, times that do not go back, each within a slice of its row;
// counters.
void expect_chrome_rules(const Timeline& timeline);

}  // namespace fusescope::timeline
