#pragma once
// Runs a sweep's trials: takes what the strategy proposes, leaves out what the log has, runs the
// rest on several threads, and logs each trial as it ends.

#include <atomic>
#include <functional>
#include <string>
#include <vector>

#include "sweep/executor.hpp"
#include "sweep/search_space.hpp"
#include "sweep/trial_log.hpp"

namespace fusescope::sweep {

struct Progress {
  const Trial* last = nullptr;  // the trial that just ended
  const Trial* best =
      nullptr;         // the fastest of the search so far, this run's and the log's; or null
  long long done = 0;  // trials in the log, of `planned`
  long long planned = 0;
  long long failures = 0;   // not ok, of `done`
  double seconds = 0;       // since this run began
  double seconds_left = 0;  // by the pace so far
};

struct RunnerOptions {
  int jobs = 1;                             // threads; at most the engine's parallel_runs()
  const std::atomic<bool>* stop = nullptr;  // once true no trial is started; those running end
  std::function<void(const Progress&)> progress;  // after each trial, one call at a time
};

enum class Ending { complete, budget_spent, stopped };  // budget: of seconds

struct Outcome {
  Ending ending = Ending::complete;
  long long ran = 0;      // trials of this run
  long long found = 0;    // trials that the log had already
  long long planned = 0;  // trials of the whole sweep
};

// The search itself. Throws InputError when the log cannot be written.
Outcome run_search(const SweepConfig& config, const DeviceLimits& device, Executor& executor,
                   TrialLog& log, const RunnerOptions& options);

// Given configs beside the search: the rungs of the ladder. A label and config that the log has is
// not run again.
struct Labelled {
  std::string label;
  Config config;
};
Outcome run_labelled(const std::vector<Labelled>& configs, Executor& executor, TrialLog& log,
                     const RunnerOptions& options);

}  // namespace fusescope::sweep
