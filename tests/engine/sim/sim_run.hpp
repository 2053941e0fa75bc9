#pragma once
// Short ways to a simulated wall or timeline, for the tests of the model.

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include "engine/sim/simulate.hpp"

namespace fusescope::engine::sim {

inline Problem problem_of(const std::string& shape, const std::string& routing) {
  return make_problem(load_shape(shape), parse_routing(routing));
}

inline Problem problem_of(const Shape& shape, const std::string& routing) {
  return make_problem(shape, parse_routing(routing));
}

// A small layer with everything odd: quick, and nothing divides evenly.
inline Shape odd_shape() {
  return {"odd", 3, 37, 512, 7, 3, 192, "made up for tests"};
}

// One whose experts have from few rows to several row blocks, some with a short last one.
inline Shape long_experts() {
  return {"long experts", 3, 95, 512, 5, 3, 192, "made up for tests"};
}

inline double wall_us(const Problem& problem, const Config& config, const Profile& profile) {
  const Iteration iteration =
      simulate(problem, config, profile, tables_for(problem, config), 1, false);
  return static_cast<double>(
             *std::max_element(iteration.rank_wall.begin(), iteration.rank_wall.end())) /
         1e3;
}

inline timeline::Timeline timeline_of(const Problem& problem, const Config& config,
                                      const Profile& profile) {
  timeline::Timeline timeline =
      *simulate(problem, config, profile, tables_for(problem, config), 1, true).timeline;
  timeline.meta.programmatic =
      config.launch == LaunchOrder::programmatic;  // as the engine stamps it
  return timeline;
}

using EventTest = std::function<bool(const timeline::Event&)>;

// Time of all slices of a kind that pass the test [ns].
inline std::int64_t total_ns(const timeline::Timeline& timeline, Kind kind,
                             const EventTest& counts = {}) {
  std::int64_t total = 0;
  for (const timeline::Event& event : timeline.events) {
    if (event.kind == kind && (!counts || counts(event))) {
      total += event.end_ns - event.begin_ns;
    }
  }
  return total;
}

// The shortest slice of a kind that passes the test [ns]; INT64_MAX if there is none.
inline std::int64_t shortest_ns(const timeline::Timeline& timeline, Kind kind,
                                const EventTest& counts = {}) {
  std::int64_t least = INT64_MAX;
  for (const timeline::Event& event : timeline.events) {
    if (event.kind == kind && (!counts || counts(event))) {
      least = std::min(least, event.end_ns - event.begin_ns);
    }
  }
  return least;
}

inline long long count_of(const timeline::Timeline& timeline, Kind kind) {
  return std::count_if(timeline.events.begin(), timeline.events.end(),
                       [&](const timeline::Event& event) { return event.kind == kind; });
}

}  // namespace fusescope::engine::sim
