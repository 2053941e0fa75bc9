#pragma once
// View 4, the ablation ladder: one feature more per rung, each with what it gained.

#include <string>
#include <vector>

#include "layer/config.hpp"

namespace fusescope::analysis {

struct LadderRung {
  std::string name;    // "+ pull order"
  Config config;
};

// serial -> fused, unordered, block per job -> + pull order -> + job order -> + dispenser -> + all hands
// -> + tuned split. `tuned` is the config of the last rung; the split of the others is `first_split`'s.
std::vector<LadderRung> ladder_configs(const Config& first_split, const Config& tuned);

struct LadderStep {
  std::string name;
  std::string config;
  double wall_us = 0;
  double half_ci_us = 0;       // 0 for a simulation
  double gain_us = 0;          // against the rung before; positive = faster
  double against_serial = 0;   // wall / serial wall - 1
};
struct Ladder {
  std::vector<LadderStep> steps;
};

}  // namespace fusescope::analysis
