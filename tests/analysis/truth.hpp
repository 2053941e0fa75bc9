#pragma once
// The truth test of the attribution, for simulated and recorded timelines alike: a known delay is injected
// at a named point of the layer, and the wall time that it adds must be attributed to that point.

#include <cstdint>
#include <ostream>
#include <span>
#include <string>
#include <vector>

#include "analysis/critical_path.hpp"
#include "layer/config.hpp"
#include "timeline/timeline.hpp"

namespace fusescope::analysis {

struct TruthPoint {
  InjectPoint point = InjectPoint::none;
  const char* name = "";
  // The delayed operations themselves: time of these events on the critical path is the delay's.
  bool (*is_delayed)(const timeline::Timeline&, const timeline::Event&, const Inject&) = nullptr;
  std::vector<Step> steps;  // that the operations are part of
  std::vector<int> delays_us;
};
std::ostream& operator<<(std::ostream& out, const TruthPoint& point);

const std::vector<TruthPoint>& truth_points();
Inject injection(const TruthPoint& point, int delay_us);

// What the critical path of one iteration says.
struct Told {
  std::int64_t wall_ns = 0;
  std::int64_t at_point_ns = 0;  // of the operations that `inject` delays
  std::int64_t in_steps_ns = 0;  // of the steps that they are part of
  std::int64_t tiles_ns = 0;     // of both GEMMs
  std::int64_t exposed_ns = 0;   // exposed communication
};
Told told(const TruthPoint& point, const Inject& inject, const timeline::Timeline& timeline);

// Of iterations in turns, without the delay and with it: medians of the differences of a turn.
struct TruthRow {
  double base_us = 0;   // median wall without the delay
  double added_us = 0;  // to the wall
  double at_point_us = 0;
  double in_steps_us = 0;
  double tiles_us = 0;
  double exposed_us = 0;
  double spread_us = 0;  // of the wall without the delay: largest less smallest
  double share() const { return at_point_us / added_us; }  // attributed to the point
  double steps_share() const { return in_steps_us / added_us; }
};
// As many of either; at least one.
TruthRow compare_told(std::span<const Told> without, std::span<const Told> with);

}  // namespace fusescope::analysis
