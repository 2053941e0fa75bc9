#pragma once
// A sweep on disk: sweep.json (its config, standing alone), trials.jsonl (the log), trials.csv and
// trials.t4.json, best/ (a
// run of the winner) and, when asked for, the report and the winner's timeline for viewers.

#include <string>
#include <vector>

#include "sweep/sweep_config.hpp"
#include "sweep/trial_log.hpp"

namespace fusescope::cli {

inline constexpr const char* kSweepFile = "sweep.json";
inline constexpr const char* kTrialsFile = "trials.jsonl";
inline constexpr const char* kCsvFile = "trials.csv";
inline constexpr const char* kT4File = "trials.t4.json";
inline constexpr const char* kT4MetadataFile = "metadata.t4.json";

// `name_or_path`: a sweep's file, or a name in the sweeps folder ("quickstart"). Throws InputError with a
// suggestion.
std::string find_sweep(const std::string& name_or_path);
std::vector<std::string> list_sweeps();  // names, sorted

// Throws InputError unless the folder is missing, empty or holds a trial log.
void require_sweep_folder(const std::string& folder);
bool holds_sweep(const std::string& folder);

// trials.csv, trials.t4.json and metadata.t4.json. `results`: latest() of the log.
void write_exports(const std::string& folder, const sweep::LogHeader& header,
                   const std::vector<sweep::Trial>& results);

struct SweepRecord {
  sweep::SweepConfig config;  // of sweep.json
  sweep::LogContents log;
};
SweepRecord read_sweep_folder(const std::string& folder);

}  // namespace fusescope::cli
