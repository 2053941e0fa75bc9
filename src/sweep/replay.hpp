#pragma once
// How good a search strategy is, judged on a log that holds a whole space: the strategy gets stored
// samples where it asked for a measurement, and pays what those cost when they were taken.

#include <map>
#include <string>
#include <vector>

#include "base/json_reader.hpp"
#include "sweep/strategy.hpp"
#include "sweep/trial_log.hpp"

namespace fusescope::sweep {

// A strategy's search with one seed. Costs are fractions of what the whole log cost.
struct ReplayRun {
  bool reached = false;         // its best so far was truly within the goal of the log's best
  double time_to_reach = 0;     // set-up, checks, warm-up, rests and samples until then
  double samples_to_reach = 0;  // the samples' walls alone
  double time = 0;              // of the whole search
  double samples = 0;
  double gap = 0;  // what it chose in the end is that much slower than the log's best (relative)
  int measurements = 0;
  int configs = 0;
};

struct ReplayOptions {
  int seeds = 100;
  double goal = 0.02;
  double budget = 0.10;  // of the log's cost: how many seeds reach the goal within it is counted
};

struct ReplayResult {
  std::string strategy;
  std::vector<ReplayRun> runs;  // by seed, from 1
};

// The stored samples of a whole search, and what they cost.
class StoredSamples {
 public:
  // `log`: of a search of every config of `config`, which outlives this. A simulation's set-up cost is
  // its warm-up. Throws InputError when nothing ran, or nothing of what `config` spans.
  StoredSamples(const LogContents& log, const SweepConfig& config);

  const SweepConfig& config() const { return *config_; }
  const DeviceLimits& device() const { return device_; }
  std::size_t configs() const { return stored_.size(); }
  double seconds() const { return seconds_; }
  double sample_seconds() const { return sample_seconds_; }
  double best_us() const { return best_us_; }
  int within(double goal) const;  // configs whose wall is within `goal` of the best

  // Each seed draws the samples of a config in another order, and starts the strategy elsewhere.
  ReplayRun replay(Search search, std::uint64_t seed, double goal, const Predict& predict) const;

 private:
  void refuse_another_space() const;

  struct Stored {
    Trial result;  // of latest()
    double setup_seconds = 0;
  };

  const SweepConfig* config_;
  DeviceLimits device_;
  std::map<std::uint64_t, Stored> stored_;  // by the config's hash
  double seconds_ = 0;
  double sample_seconds_ = 0;
  double rest_seconds_ = 0;  // before each measured sample
  double best_us_ = 0;
};

ReplayResult replay_strategy(const StoredSamples& stored, SearchKind kind,
                             const ReplayOptions& options, const Predict& predict);

std::string replay_text(const StoredSamples& stored, const std::vector<ReplayResult>& results,
                        const ReplayOptions& options);
Json replay_json(const StoredSamples& stored, const std::vector<ReplayResult>& results,
                 const ReplayOptions& options);

}  // namespace fusescope::sweep
