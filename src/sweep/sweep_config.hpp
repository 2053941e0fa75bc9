#pragma once
// A sweep as its JSON file says it: what is run, over which configs, for how long.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/json_reader.hpp"
#include "layer/config.hpp"
#include "layer/problem.hpp"
#include "sweep/constraint.hpp"

namespace fusescope::sweep {

struct Axis {
  std::string knob;
  std::vector<KnobValue> values;  // distinct, in the file's order
};

enum class SearchKind { grid, random, local, racing, sim_guided };
std::string_view name(SearchKind kind);

// Stop once `trials` measurements in a row have not made the best faster by `at_least` (relative).
struct Improvement {
  double at_least = 0;
  long long trials = 0;  // 0 = never stop for that
};

struct Search {
  SearchKind kind = SearchKind::grid;
  long long trials = 0;  // budget: stop after that many measurements; 0 = no limit
  double seconds = 0;    // budget: start no trial after that long; 0 = no limit
  Improvement improvement;
  std::uint64_t seed = 1;  // random, local, racing
  std::string profile;     // sim_guided: the simulator's device profile; "" = h200-nvlink
};

// How one trial is measured; see engine::RunRequest. The L2 is warm: an iteration finds what the one
// before it left there.
struct Measure {
  int warmup = 3;
  int min_samples = 20;
  double target_rel_ci = 0.005;
  double max_seconds = 3;
  int rest_ms =
      0;  // the GPUs' before each iteration; 0 = back to back, at the power limit if need be
  std::uint64_t seed = 1;
  double throttle_below = 0.9;    // of the sweep's median SM clock: slower samples are set apart
  std::optional<int> base_every;  // trials between two measurements of the base config, 0 = none;
                                  // unset: kBaseEvery, and none on the simulator
  double deadline_seconds = 0;    // of a trial; 0 = from the baseline
};
inline constexpr int kBaseEvery = 25;

// The search's best are timed again in turns, so that what the machine did meanwhile hits all alike.
struct Finalists {
  int configs = 4;  // at most that many; fewer than 2 = none
  int rounds = 8;
  int samples = 10;  // of each config in each round
};

// One part of a sweep: configs are dealt to `count` shards, `index` from 1.
struct Shard {
  int index = 1;
  int count = 1;
};
// "2/8". Throws InputError naming `option`.
Shard parse_shard(const std::string& text, const std::string& option);
std::string shard_text(const Shard& shard);

struct SweepConfig {
  std::string file;  // as the user gave it
  std::string name;
  std::string why;
  Shape shape;
  RoutingSpec routing;
  std::string engine = "auto";  // auto | sim | cuda
  std::string profile;          // sim; "" = the engine's own choice
  Config base;                  // what the axes start from
  std::vector<Axis> axes;       // in the knob registry's order
  std::vector<Constraint> constraints;
  Search search;
  Measure measure;
  Finalists finalists;
  Shard shard;
  bool ladder = false;  // run the ablation ladder once the search is done
  Json document;        // the file, with the shape written out: a sweep folder's sweep.json
};

// `path`: the sweep's JSON file. Throws InputError naming file, JSON path and value; an unknown key
// is refused with a suggestion.
SweepConfig read_sweep_config(const std::string& path);
SweepConfig parse_sweep_config(const Json& document, const std::string& file);

// What decides which trials a sweep has and how each is measured: base, axes, constraints, order of
// the search, shard and measurement rules; not its name nor its budget, so that a sweep can be extended.
// Two sweeps with equal identities (and equal problems and devices) can share a trial log.
Json identity(const SweepConfig& config);

std::string hex(std::uint64_t value);  // 16 hexadecimal digits

}  // namespace fusescope::sweep
