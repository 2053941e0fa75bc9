#pragma once
// View 3, the counterfactual rungs: walls of the same layer with one cost after the other taken away,
// taken in turns. What a rung adds to the one before is one cost, in wall time.
//
//   compute only, all SMs
//   + SM tax         the SMs that communication has for itself
//   + contention     communication runs beside the tiles, and nobody waits for it
//   + arrival limit  everybody waits for it, in the best order there is
//   + ordering loss  in the order of the config
//   + tail           the rest of the layer: ids exchange, schedule build, barriers, copy-in, and the final
//                    reduce with its watermarks
//   = full layer
//
// With dispatch_comm_sms 0 no SM of kernel 1 is set apart, and fetching before the first tile is contention.

#include <array>
#include <cmath>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "layer/config.hpp"
#include "layer/problem.hpp"

namespace fusescope::analysis {

// A median, or a difference of two, and its 95% interval. [us]
struct Estimate {
  double us = 0;
  double low = 0;
  double high = 0;
  double half() const { return (high - low) / 2; }
};

// How the tiles of one kernel fill the SMs: a wave is one tile on each.
struct KernelWaves {
  std::string kernel;  // "dispatch_gemm"
  long long tiles = 0;
  int sms_all = 0;
  int sms_split = 0;  // those that compute
  int waves_all() const;
  int waves_split() const;
};

// The kernels of a rank.
std::vector<KernelWaves> kernel_waves(const Problem& problem, const Config& config,
                                      const DeviceLimits& device);

// Of one rung. By round; rounds are what the bootstrap draws, since samples of one round share its clocks.
using RungWalls = std::vector<std::vector<double>>;

inline constexpr int kRungCosts = 5;
enum class RungCost { sm_tax, contention, arrival_limit, ordering_loss, tail };
std::string_view name(RungCost cost);  // "SM tax"

// The full layer as the rungs sampled it, held against samples of the same config that were taken apart from
// them. The rungs telescope to the former by construction; this says whether that is the wall of the run.
struct Telescoping {
  double median_us = 0;  // of the run's own samples
  double apart_us = 0;   // the rungs' full layer less that
  double bound_us = 0;   // how far apart the two 95% intervals allow them to be
  bool agrees() const { return std::abs(apart_us) <= bound_us; }
};

struct Rungs {
  int rounds = 0;
  int samples = 0;                              // per rung, all rounds together
  std::array<Estimate, kRungs.size()> walls{};  // medians, in the order of kRungs
  // By RungCost. They and the first wall sum to the last one exactly.
  std::array<Estimate, kRungCosts> costs{};
  Estimate waiting;  // arrival limit and ordering loss together
  std::vector<KernelWaves> waves;
  std::optional<Telescoping> telescoping;  // set by hold_against
  std::vector<std::string> sentences;  // what a reader should know: whole waves, costs within noise

  const Estimate& compute() const { return walls.front(); }
  const Estimate& full() const { return walls.back(); }
};

// What a study leaves, as a row of a table names it: "compute only, all SMs".
std::string_view rung_name(Study study);

// `walls` in the order of kRungs, the same rounds in all. Medians of all samples; intervals by a bootstrap
// that draws rounds, the same for all rungs, 2000 times, with a fixed seed. Throws std::invalid_argument if
// a rung or a round is empty or missing.
Rungs make_rungs(const std::array<RungWalls, kRungs.size()>& walls, std::vector<KernelWaves> waves);

// Fills `telescoping`, and puts what it says before the other sentences; a warning where they disagree. The
// median of the run's own samples, and half its 95% interval; 0 for a simulation.
void hold_against(Rungs& rungs, double median_us, double half_ci_us);

// As `run` and `attribute` print it.
std::string rungs_text(const Rungs& rungs);
// `{"walls_us": ..., "costs_us": ..., "waves": ..., "sentences": ...}`, without the samples.
std::string to_json(const Rungs& rungs);

}  // namespace fusescope::analysis
