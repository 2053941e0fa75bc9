#pragma once
// One simulated iteration: tables and a world in, the ranks' walls and the timeline out.

#include <cstdint>
#include <optional>
#include <vector>

#include "engine/sim/world.hpp"

namespace fusescope::engine::sim {

// The tables that a config runs on: one per rank, or a single one where all ranks share the layout.
std::vector<ScheduleTables> tables_for(const Problem& problem, const Config& config);

struct Iteration {
  std::vector<Time> rank_wall;                 // [ns]
  std::optional<timeline::Timeline> timeline;  // wiring, tracks, events and counters; no origin yet
  std::uint64_t steps = 0;                     // the scheduler's
};

// Throws CheckFailure if the protocol breaks or gets stuck. `chooser`: see StepChooser.
Iteration simulate(const Problem& problem, const Config& config, const Profile& profile,
                   const std::vector<ScheduleTables>& tables, std::uint64_t seed, bool record,
                   StepChooser* chooser = nullptr);

}  // namespace fusescope::engine::sim
