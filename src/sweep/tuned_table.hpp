#pragma once
// Tuned tables: the winner per (device, shape, routing class), as JSON. The user has one; others come with the program.

#include <optional>
#include <string>
#include <vector>

#include "base/json_reader.hpp"
#include "layer/problem.hpp"
#include "sweep/results.hpp"

namespace fusescope::sweep {

// What a winner holds for. Two devices of one name are one; a routing's seed and a shape's name do not
// matter, its numbers do.
struct TunedKey {
  std::string engine;   // "cuda", "sim": a simulated winner is never taken for a measured one
  std::string device;   // DeviceLimits::name
  std::string shape;    // shape_numbers()
  std::string routing;  // form(): "zipf:1.2"
  bool operator==(const TunedKey&) const = default;
};
std::string shape_numbers(const Shape& shape);  // "R=2 T=1024 H=4096 E=64 K=8 I=768"
TunedKey tuned_key(const std::string& engine, const DeviceLimits& device, const Problem& problem);
std::string describe(const TunedKey& key);

struct RunnerUp {
  Config config;
  double slower = 0;  // its wall over the winner's, less 1
  double low = 0;     // 95% interval of that; equal to `slower` where nothing was timed in turns
  double high = 0;
  bool tie = false;
};
// "+1.20% (95% +0.70% to +1.70%, timed in turns), a tie"
std::string describe(const RunnerUp& runner_up);

struct TunedEntry {
  TunedKey key;
  Config config;
  double wall_us = 0;
  double half_ci_us = 0;
  std::optional<RunnerUp> runner_up;
  std::string source;     // "measured on 2 x NVIDIA H200"
  int rest_ms = 0;        // before each measured iteration; 0 = back to back
  std::string problem;    // describe(problem)
  std::string fusescope;  // version and commit
  std::string log;        // the trial log that it comes from
  std::string date;       // UTC, ISO 8601
};

// "measured on 2 x NVIDIA H200, each iteration after a rest of 10 ms"
std::string describe_source(const TunedEntry& entry);

// The winner of a log and how far the runner-up is; nothing when no trial ran.
std::optional<TunedEntry> tuned_entry(const std::vector<Trial>& trials, const TunedKey& key);

// $FUSESCOPE_TUNED if set, else tuned.json of the working folder.
std::string tuned_table_path();

// The table's entries; none where the file is missing. Throws InputError naming file and JSON path.
std::vector<TunedEntry> read_tuned_table(const std::string& path);
// The table with `entry` in place of the one with its key, which is returned in `replaced`.
Json with_entry(const std::vector<TunedEntry>& table, const TunedEntry& entry,
                std::optional<TunedEntry>& replaced);

struct TunedTable {
  std::string path;
  bool shipped = false;
  std::vector<TunedEntry> entries;
};
// "own table tuned.json", "shipped table /usr/share/fusescope/sweeps/tuned/h200.json"
std::string describe(const TunedTable& table);

// The user's table at `own`, then the shipped ones: tuned/*.json of the sweeps folder, by name. Any of them may be
// missing. Throws InputError naming file and JSON path.
std::vector<TunedTable> tuned_tables(const std::string& own);

struct TunedChoice {
  TunedEntry entry;
  std::string from;  // where it is, what it is worth, in words
};
// The entry for a problem on a device: of the first table that has one. `rest_ms`: of the run that asks; an entry that
// was measured with another is taken, and it is said. Throws InputError saying which entries of its engine there are
// instead, how to make one, and which knobs to set for what another machine's has.
TunedChoice tuned_choice(const std::vector<TunedTable>& tables, const TunedKey& key,
                         int rest_ms = 0);

}  // namespace fusescope::sweep
