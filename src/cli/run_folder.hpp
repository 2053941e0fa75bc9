#pragma once
// A run on disk: a folder with run.json (problem, config, samples, provenance, attribution) and, when an
// iteration was recorded, timeline.fst.

#include <optional>
#include <string>
#include <vector>

#include "analysis/rungs.hpp"
#include "analysis/summary.hpp"
#include "base/json_reader.hpp"
#include "engine/engine.hpp"
#include "sweep/statistics.hpp"

namespace fusescope::cli {

// One config run on an engine, and what the analysis says of it.
struct Run {
  engine::RunResult result;
  sweep::MedianInterval wall_us;
  // Where a timeline was recorded: how it breaks the event contract, or "", and then what it says.
  std::string timeline_violation;
  std::optional<analysis::Attribution> attribution;
  std::optional<analysis::Rungs> rungs;  // where they were asked for
};

// Median, and 10% and 90% of the values (the nearest of them); zeros of none.
struct Spread {
  double low = 0;
  double median = 0;
  double high = 0;
};
Spread spread(std::vector<double> values);
Spread wall_spread(const engine::RunResult& result);

// Throws what the engine throws.
Run run_once(engine::Engine& engine, const engine::RunRequest& request);

// run.json. `attribution_rows` bounds the lists in it.
Json run_document(const engine::Engine& engine, const engine::RunRequest& request, const Run& run,
                  int attribution_rows = 20);

// Throws InputError unless the folder is missing, empty, or holds a run of the same problem and config
// (which is then replaced); with `force`, whatever it holds stays and only the run's files are replaced.
void require_free(const std::string& folder, const engine::RunRequest& request, bool force);

void write_run(const std::string& folder, const Json& document, const Run& run);

// A run's record, read back. Throws InputError naming file and JSON path.
struct RunRecord {
  std::string fusescope, command, date, engine, source, problem;
  Config config;
  std::string device;        // engine::Engine::identity()
  std::string problem_hash;  // hexadecimal
  timeline::Provenance provenance = timeline::Provenance::simulated;
  double median_us = 0;
  double half_ci_us = 0;
  std::vector<double> samples_us;  // walls, in order
  int rest_ms = 0;                 // of a measured run, before each iteration
  // How the samples were taken; "" where nothing was measured.
  std::string sampling() const;
};
RunRecord read_run(const std::string& folder);
bool holds_run(const std::string& folder);

// The timeline that a path means: a file itself; of a run's folder its timeline.fst; of a sweep's folder
// its best config's. Throws InputError saying what is missing.
std::string timeline_file(const std::string& path);

// Loads it and holds it to the event contract. Throws InputError, or CheckFailure with the violation.
timeline::Timeline load_checked_timeline(const std::string& file);

inline constexpr const char* kRunFile = "run.json";
inline constexpr const char* kTimelineFile = "timeline.fst";
inline constexpr const char* kBestFolder = "best";

}  // namespace fusescope::cli
