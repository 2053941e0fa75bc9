#pragma once
// View 4, the ablation ladder: one feature more per rung, each with what it gained.

#include <string>
#include <vector>

#include "layer/config.hpp"

namespace fusescope::analysis {

struct LadderRung {
  std::string name;  // "+ pull order"
  Config config;
};

// serial -> fused, unordered, block per job -> + pull order -> + job order -> + dispenser
// -> + all hands -> + tuned split. `tuned` is the config of the last rung; the other knobs of the rungs
// before are `first_split`'s. No rung injects a delay or takes a cost away.
std::vector<LadderRung> ladder_configs(const Config& first_split, const Config& tuned);

// What came of a rung: its median wall.
struct LadderWall {
  bool ran = true;  // false: the rung failed; its numbers mean nothing
  double wall_us = 0;
  double half_ci_us = 0;  // 95%; 0 for a simulation
};

struct LadderStep {
  std::string name;
  std::string config;  // describe(config)
  bool ran = true;
  double wall_us = 0;
  double half_ci_us = 0;       // 0 for a simulation
  double gain_us = 0;          // against the last rung before it that ran; positive = faster
  double gain_half_ci_us = 0;  // of the gain, samples of two rungs taken as independent
  bool tie = false;            // the gain is within its interval
  double against_serial = 0;   // wall / serial wall - 1; 0 if serial did not run
};
struct Ladder {
  std::vector<LadderStep> steps;
};

// One wall per rung, in order; throws std::invalid_argument if they are not as many.
Ladder make_ladder(const std::vector<LadderRung>& rungs, const std::vector<LadderWall>& walls);

}  // namespace fusescope::analysis
