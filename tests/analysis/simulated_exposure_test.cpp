// Exposed communication by the views of simulated runs, rungs included: without noise they have to agree.

#include <gtest/gtest.h>

#include "analysis/summary.hpp"
#include "simulated.hpp"

namespace fusescope::analysis {
namespace {

// Few blocks that run jobs, and no hands to help: they fall behind, and the path goes through their jobs while
// tiles still run.
TEST(SimulatedExposure, ViewsAgreeWhereThePathGoesThroughJobsBesideTiles) {
  Config config;
  config.combine_comm_sms = 8;
  config.all_hands = false;
  const Problem problem = seed_problem("uniform");
  const timeline::Timeline timeline = simulated(problem, config);
  const Attribution attribution = attribute(timeline);
  const Rungs rungs = simulated_rungs(problem, config);
  const Exposure exposure = state_exposure(timeline, attribution, &rungs);
  EXPECT_GT(attribution.path.by_step[static_cast<std::size_t>(Step::combine_work)],
            attribution.wall_ns * 4 / 100);
  EXPECT_TRUE(exposure.agree) << exposure_text(exposure);
}

}  // namespace
}  // namespace fusescope::analysis
