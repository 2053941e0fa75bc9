#pragma once
// The figures that were published about the seed's machine, as the model predicts them: one definition
// for the profile's `reference_figures`, for reports and for tests.

#include <string>
#include <vector>

#include "engine/sim/sim_engine.hpp"

namespace fusescope::engine::sim {

namespace figure {
// Wall of the first fused form (no order, one block per job) over the serial layer's, less one.
inline constexpr const char* kFusedUnorderedVsSerial = "fused_unordered_vs_serial";
// Wall of the tuned form over the serial layer's, less one.
inline constexpr const char* kTunedVsSerial = "tuned_vs_serial";
// Kernel 1 of the tuned form, less its GEMM alone on all SMs.
inline constexpr const char* kExposedKernel1 = "exposed_kernel1_us";
// From kernel 1's begin until the first expert's rows are there, as a share of the exposed time.
inline constexpr const char* kHeadShare = "head_share_of_exposed_kernel1";
// The schedule build's phase.
inline constexpr const char* kScheduleRebuild = "schedule_rebuild_us";
}  // namespace figure

struct FigurePrediction {
  std::string name;
  double value = 0;
  std::string unit;
};

// Simulates what the figures need, about five runs. `unordered` is the ladder's first fused rung, `tuned`
// its last. Throws what the engine throws.
std::vector<FigurePrediction> predict_figures(SimEngine& engine, const Problem& problem,
                                              Config unordered, Config tuned);

}  // namespace fusescope::engine::sim
