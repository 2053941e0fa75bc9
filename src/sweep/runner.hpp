#pragma once
// Runs a sweep's trials: takes what the strategy proposes, leaves out what the log has, runs the
// rest, and logs each trial as it ends. While one trial is written to the disk the next one runs.

#include <atomic>
#include <functional>
#include <string>
#include <vector>

#include "sweep/executor.hpp"
#include "sweep/search_space.hpp"
#include "sweep/strategy.hpp"
#include "sweep/trial_log.hpp"

namespace fusescope::sweep {

struct Progress {
  const Trial* last = nullptr;  // the trial that just ended
  const Trial* best =
      nullptr;             // the fastest of the search so far, this run's and the log's; or null
  long long done = 0;      // trials in the log, of `planned`
  long long planned = 0;   // 0: the strategy decides as it goes
  long long failures = 0;  // not ok, of `done`
  double seconds = 0;      // since this run began
  double trials_per_second = 0;  // of this run
  double seconds_left = 0;       // by the pace so far; 0 where `planned` is
};

struct RunnerOptions {
  int jobs = 1;                             // trials at a time; at most what the executor takes
  const std::atomic<bool>* stop = nullptr;  // once true no trial is started; those running end
  std::function<void(const Progress&)> progress;  // after each trial, one call at a time
  Config base;         // measured first, after every `base_every` trials, and by every new worker
  int base_every = 0;  // 0 = the base is not measured
};

enum class Ending {
  complete,
  trials_spent,   // the budget of trials
  seconds_spent,  // the budget of seconds
  no_progress,    // the budget of improvement
  stopped,
};

struct Outcome {
  Ending ending = Ending::complete;
  long long ran = 0;           // trials of this run, without base measurements
  long long base_ran = 0;      // base measurements of this run
  long long found = 0;         // trials that the log had already
  long long planned = 0;       // trials of the whole sweep; 0: not known beforehand
  double startup_seconds = 0;  // until the first worker was open
  double seconds = 0;          // this run took, start-up included
  double engine_seconds = 0;   // of it, trials were in the engine; of several at a time, their mean
  double sample_seconds = 0;   // of that, the samples' walls
  int rest_ms = 0;             // before each iteration: in the engine, and in no sample's wall
};

// The search itself. `predict` is used by sim_guided only. Throws InputError when the log cannot be
// written.
Outcome run_search(const SweepConfig& config, const DeviceLimits& device, Executor& executor,
                   TrialLog& log, const RunnerOptions& options, const Predict& predict = {});

// Given configs beside the search: rungs of the ladder, finalists. What the log has already (kind,
// label, config and visit) is not run again. `samples` of each; 0 = by the sweep's rules.
struct Given {
  TrialKind kind = TrialKind::rung;
  std::string label;
  Config config;
  int visit = 0;
};
Outcome run_given(const std::vector<Given>& given, int samples, const Measure& measure,
                  Executor& executor, TrialLog& log, const RunnerOptions& options);

}  // namespace fusescope::sweep
