#pragma once
// One line of a trial log: a config that was measured once, and what came of it. A strategy may come
// back to a config: each time is a trial of its own, a later `visit`.

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "layer/config.hpp"

namespace fusescope::sweep {

enum class Verdict {
  ok,
  illegal,         // a rule forbids the config on this device
  wrong_output,    // it ran, and its outputs are not the reference's
  aborted,         // a wait on the device was given up, or a check failed
  hang,            // the worker was ended at the trial's deadline, or its heartbeat stopped
  crashed,         // the worker ended by itself or by a signal
  launch_failure,  // a launch or another call of the device's runtime failed
  out_of_memory,
};
inline constexpr int kVerdicts = static_cast<int>(Verdict::out_of_memory) + 1;
std::string_view name(Verdict verdict);

enum class TrialKind {
  search,    // what the strategy proposed
  rung,      // of the ablation ladder; `label` is the rung's name
  base,      // the base config again: the drift guard's yardstick
  finalist,  // the search's best, timed again in turns; `visit` is the round
};
inline constexpr int kTrialKinds = static_cast<int>(TrialKind::finalist) + 1;
std::string_view name(TrialKind kind);

struct Trial {
  int id = 0;  // position in the order of its kind
  TrialKind kind = TrialKind::search;
  std::string label;  // "" or the rung's name ("serial", "+ pull order")
  int visit = 0;      // how often this config had been measured before, in trials of this kind
  Config config;
  Verdict verdict = Verdict::ok;
  std::string reason;  // why, when not ok
  std::string source;  // "simulated on rtx-pro-5000-pcie5"; "" when it never ran

  // Samples as they were taken.
  std::vector<double> wall_us;                    // slowest rank, in order
  std::vector<std::vector<double>> rank_wall_us;  // [rank][sample]; empty: not known
  std::vector<double> sm_clock_mhz;               // [sample]; empty: not known

  // What the timing guard makes of them (timing_guard.hpp).
  double throttle_mhz = 0;   // a sample below this clock is set apart; 0: none is
  double drift = 1;          // the base config's wall now over its first; walls are divided by it
  double raw_median_us = 0;  // of all samples as they were taken
  double median_us = 0;      // of those that count, normalised: what trials are compared by
  double half_ci_us = 0;     // of median_us, 95%; 0 for a simulation without jitter

  std::map<std::string, double> steps_us;  // critical path by step; sums to timeline_wall_us
  double timeline_wall_us = 0;             // of the iteration that steps_us partitions
  double exposed_us = 0;                   // exposed communication by critical path
  double seconds = 0;                      // in the engine: set-up, checks, warm-up and samples

  // Not in the log, of a result (results.hpp).
  std::vector<int> pooled;         // the samples of each visit in it
  double searched_us = 0;          // median_us by the search's samples alone, finalists' too
  double searched_half_ci_us = 0;  // half_ci_us likewise
  bool operator==(const Trial&) const = default;
};

// The samples whose clock lies below `throttle_mhz`.
int throttled_samples(const Trial& trial);
// Those of them that do not count: all, or none where fewer than half of the samples would be left.
int samples_set_apart(const Trial& trial);
// The samples that count, normalised: walls divided by `drift`. [us]
std::vector<double> counted_walls(const Trial& trial);

// Sets raw_median_us, median_us and half_ci_us from the samples, drift and throttle_mhz.
void set_medians(Trial& trial);

// The trial log's line for a trial, without its newline: a JSON object with every knob of the
// config.
std::string to_line(const Trial& trial);
// Throws InputError naming `file` and `place` ("line 12") when the line is not a whole trial.
Trial trial_from_line(std::string_view line, const std::string& file, const std::string& place);

}  // namespace fusescope::sweep
