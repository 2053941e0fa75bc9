#pragma once
// An engine runs a (problem, config) and returns samples plus, if asked, a timeline.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "layer/config.hpp"
#include "layer/problem.hpp"
#include "timeline/timeline.hpp"

namespace fusescope::engine {

struct Sample {
  double wall_us = 0;  // slowest rank
  std::vector<double> rank_wall_us;
  double sm_clock_mhz = 0;  // 0 = not known
};

// Which of the recorded iterations becomes the timeline.
struct IterationChoice {
  enum class Pick { median, slowest, number };
  Pick pick = Pick::median;
  int number = 0;  // for Pick::number; the first is 0
  bool operator==(const IterationChoice&) const = default;
};
// Of "median", "slowest" or a number. Throws InputError.
IterationChoice parse_iteration_choice(const std::string& text);

struct RunRequest {
  const Problem* problem = nullptr;
  Config config;
  int warmup = 3;
  int min_samples = 20;
  double target_rel_ci = 0.005;  // stop sampling once the median's interval is that narrow
  double max_seconds = 3;
  std::uint64_t seed = 1;
  // cuda: the GPUs rest that long before each iteration: warm-ups and samples (max_seconds counts the rests
  // too), those of rungs, the iteration whose phases are timed, the recorded ones and those in turns with them.
  // Where counters are sampled, one rest is before two iterations, which then follow each other at once. An
  // iteration that is run for its outputs alone has no rest before it. sim: no power limit, so nothing rests.
  int rest_ms = 0;
  int deadline_ms = 2000;  // cuda: of every wait on the device, 1 or more; sim: waits for nothing
  bool timeline = false;   // record iterations, and make a timeline of one
  IterationChoice iteration = {};  // cuda: of which one
  bool counters = false;           // cuda: sample the GPUs' own counters beside it
  bool phases = false;             // cuda: time the phases of one more iteration
  // Samples of the layer with one cost after the other taken away, in so many rounds of turns; 0 = none.
  // InputError where why_no_rungs() has a reason.
  int rung_rounds = 0;
  std::string command;  // recorded as the timeline's origin
};

// That cuda records for a timeline, in turns with as many that it does not.
inline constexpr int kRecordedIterations = 20;

inline constexpr int kMostRestMs = 10'000;
// How measured iterations were taken: "iterations back to back", "each iteration after a rest of 10 ms".
inline std::string describe_rest(int rest_ms) {
  return rest_ms == 0 ? "iterations back to back"
                      : "each iteration after a rest of " + std::to_string(rest_ms) + " ms";
}

// A phase of an iteration as one GPU's stream saw it, from the end of the phase before it.
struct PhaseSpan {
  int device = 0;
  timeline::Kind kind = timeline::Kind::ids_exchange;
  double us = 0;
};

// A rung of the counterfactual ladder: walls of the layer with one cost taken away.
struct RungSamples {
  Study study = Study::full;
  std::vector<std::vector<double>> wall_us;  // by round, as many in each
};

struct RunResult {
  timeline::Provenance provenance = timeline::Provenance::simulated;
  std::string source;  // "simulated on rtx-pro-5000-pcie5", "measured on 2 x NVIDIA H200"
  std::vector<Sample> samples;
  std::optional<timeline::Timeline> timeline;
  std::string why_no_timeline;  // where one was asked for and cannot be
  std::string why_no_counters;  // the same

  std::vector<RungSamples> rungs;  // where they were asked for; in the order of kRungs

  // Measured runs only.
  std::vector<int> gpus;      // those in use, in the order of the ranks
  std::string gemm;           // what multiplied: "wgmma, tiles of 128x256"
  std::string collectives;    // of a serial layer of two ranks or more: NCCL's file, or peer copies
  double relative_error = 0;  // of the outputs that were checked before any time counted
  std::vector<PhaseSpan> phases;  // by GPU, in the order of an iteration; where they were asked for
};

class Engine {
 public:
  virtual ~Engine() = default;
  virtual std::string name() const = 0;  // "sim", "cuda"
  virtual const DeviceLimits& device() const = 0;
  virtual std::string identity() const = 0;  // device, driver, profile hash: a trial log's header
  virtual int parallel_runs() const = 0;     // runs that may be in flight at once
  // Thread-safe up to parallel_runs(). Throws InputError for an illegal config, CheckFailure for wrong
  // outputs or an aborted launch (CheckFailure::kind says which).
  virtual RunResult run(const RunRequest& request) = 0;
};

struct EngineOptions {
  std::string engine = "auto";  // auto | sim | cuda
  std::string profile;          // sim: name or path; "" = the seed machine's
  std::vector<int> devices;     // cuda; empty = all
};
// `auto` is cuda where a usable device is found, else sim.
std::unique_ptr<Engine> make_engine(const EngineOptions& options);

}  // namespace fusescope::engine
