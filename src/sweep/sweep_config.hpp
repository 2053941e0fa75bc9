#pragma once
// A sweep as its JSON file says it: what is run, over which configs, for how long.

#include <cstdint>
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

enum class SearchKind { grid, random };
std::string_view name(SearchKind kind);

struct Search {
  SearchKind kind = SearchKind::grid;
  long long trials = 0;    // budget: stop after that many; 0 = all that the axes span
  double seconds = 0;      // budget: start no trial after that long; 0 = no limit
  std::uint64_t seed = 1;  // random
};

// How one trial is measured; see engine::RunRequest.
struct Measure {
  int warmup = 3;
  int min_samples = 20;
  double target_rel_ci = 0.005;
  double max_seconds = 3;
  std::uint64_t seed = 1;
};

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
  bool ladder = false;  // run the ablation ladder once the search is done
  Json document;        // the file, with the shape written out: a sweep folder's sweep.json
};

// `path`: the sweep's JSON file. Throws InputError naming file, JSON path and value; an unknown key
// is refused with a suggestion.
SweepConfig read_sweep_config(const std::string& path);
SweepConfig parse_sweep_config(const Json& document, const std::string& file);

// What decides which trials a sweep has and how each is measured: base, axes, constraints, order of
// the search and measurement rules; not its name nor its budget, so that a sweep can be extended.
// Two sweeps with equal identities (and equal problems and devices) can share a trial log.
Json identity(const SweepConfig& config);

std::string hex(std::uint64_t value);  // 16 hexadecimal digits

}  // namespace fusescope::sweep
