#include "analysis/ladder.hpp"

#include <cmath>
#include <stdexcept>

namespace fusescope::analysis {

std::vector<LadderRung> ladder_configs(const Config& first_split, const Config& tuned) {
  Config config = first_split;
  config.study = Study::full;
  config.inject = Inject{};

  std::vector<LadderRung> rungs;
  config.form = LayerForm::serial;
  rungs.push_back({"serial", config});

  config.form = LayerForm::fused;
  config.pull_order = PullOrder::by_token;
  config.job_order = JobOrder::by_token;
  config.combine = Combine::block_per_job;
  config.all_hands = false;
  rungs.push_back({"fused, unordered, block per job", config});

  config.pull_order = PullOrder::by_slot;
  rungs.push_back({"+ pull order", config});
  config.job_order = JobOrder::by_ready;
  rungs.push_back({"+ job order", config});
  config.combine = Combine::dispenser;
  rungs.push_back({"+ dispenser", config});
  config.all_hands = true;
  rungs.push_back({"+ all hands", config});

  config = tuned;
  config.form = LayerForm::fused;
  config.study = Study::full;
  config.inject = Inject{};
  rungs.push_back({"+ tuned split", config});
  return rungs;
}

Ladder make_ladder(const std::vector<LadderRung>& rungs, const std::vector<LadderWall>& walls) {
  if (rungs.size() != walls.size()) {
    throw std::invalid_argument("make_ladder: as many walls as rungs are needed");
  }
  Ladder ladder;
  const LadderWall* before = nullptr;
  double serial_us = 0;
  for (std::size_t i = 0; i < rungs.size(); ++i) {
    const LadderWall& wall = walls[i];
    LadderStep step;
    step.name = rungs[i].name;
    step.config = describe(rungs[i].config);
    step.ran = wall.ran;
    if (wall.ran) {
      step.wall_us = wall.wall_us;
      step.half_ci_us = wall.half_ci_us;
      if (rungs[i].config.form == LayerForm::serial) {
        serial_us = wall.wall_us;
      }
      if (serial_us > 0) {
        step.against_serial = wall.wall_us / serial_us - 1;
      }
      if (before != nullptr) {
        step.gain_us = before->wall_us - wall.wall_us;
        step.gain_half_ci_us = std::hypot(before->half_ci_us, wall.half_ci_us);
        step.tie = std::abs(step.gain_us) <= step.gain_half_ci_us;
      }
      before = &wall;
    }
    ladder.steps.push_back(std::move(step));
  }
  return ladder;
}

}  // namespace fusescope::analysis
