#pragma once
// One sweep from its file to its folder: the search, the finalists, the ladder, the winner's run, the
// exports. `sweep` and `tune` are two ways to start it.

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/command.hpp"
#include "sweep/isolated_executor.hpp"
#include "sweep/runner.hpp"
#include "sweep/sweep_config.hpp"
#include "sweep/trial_log.hpp"

namespace fusescope::cli {

struct SessionOptions {
  std::string out;              // the folder
  int jobs = 0;                 // trials at a time; 0 = what the engine can
  bool resume = false;          // insist on an earlier log
  std::optional<bool> isolate;  // trials in worker processes; unset: yes, but for the simulator
  std::vector<std::string> faults;
  std::vector<Config> compare;  // not empty: no search, these are timed in turns
};

class SweepSession {
 public:
  // Opens the engine (in a worker where trials are isolated), checks the sweep against it; writes
  // nothing yet. Throws InputError.
  SweepSession(sweep::SweepConfig config, SessionOptions options, const Context& context);
  ~SweepSession();

  // Runs what the folder's log lacks, and writes the exports.
  void run();

  const sweep::SweepConfig& config() const { return config_; }
  const std::string& folder() const { return options_.out; }
  const Problem& problem() const { return problem_; }
  const DeviceLimits& device() const { return device_; }
  const std::string& engine() const { return engine_name_; }
  const std::string& identity() const { return identity_; }
  int rest_ms() const;           // before each measured iteration; 0 on the simulator
  std::string sampling() const;  // how iterations were measured; "" on the simulator
  // After run():
  const std::vector<sweep::Trial>& trials() const { return log_->trials(); }
  std::string log_path() const { return log_->path(); }
  const sweep::Outcome& outcome() const { return outcome_; }  // of all that was run
  bool stopped() const { return stopped_; }
  bool kept() const { return kept_; }  // false: the winner's run failed, and was said

 private:
  void open_engine();
  sweep::LogHeader header() const;
  void announce() const;
  sweep::RunnerOptions runner_options(class ProgressLine& line) const;
  void search();
  void finals(const std::vector<sweep::Given>& turns);
  void ladder(const Config& tuned);
  void add(const sweep::Outcome& outcome);
  void keep_best(const Config& best);

  sweep::SweepConfig config_;
  SessionOptions options_;
  const Context& context_;
  Problem problem_;
  std::unique_ptr<engine::Engine> engine_;       // of trials in this process
  sweep::IsolatedExecutor* isolated_ = nullptr;  // of trials in workers; is executor_
  std::unique_ptr<sweep::Executor> executor_;
  std::string engine_name_;
  std::string identity_;
  DeviceLimits device_;
  int jobs_ = 1;
  std::unique_ptr<sweep::TrialLog> log_;
  sweep::Outcome outcome_;
  bool stopped_ = false;
  bool kept_ = true;
};

// The hash of this program's file: what a log is bound to.
std::string binary_hash();

}  // namespace fusescope::cli
