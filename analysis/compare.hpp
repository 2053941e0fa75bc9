#pragma once
// Two runs step by step: what got faster, by how much, and whether that is beyond noise. In: two
// attributions and the walls' samples; out: differences that `attribute --against` prints and reports show.

#include <optional>
#include <string>
#include <vector>

#include "analysis/summary.hpp"
#include "timeline/timeline.hpp"

namespace fusescope::analysis {

// One of the two runs.
struct ComparedRun {
  std::string name;  // as the user named it: a folder or a file
  std::string problem;
  std::string config;
  std::string device;
  timeline::Provenance provenance = timeline::Provenance::simulated;
  std::string sampling;  // "iterations back to back": how they were measured; "": not known
  std::vector<double> samples_us;  // walls without records, in order; empty: not known
  // Of the recorded iteration; wall_ns == 0: none was recorded.
  Attribution attribution;
  double recording_cost = 0;  // wall with records / wall without - 1; 0: not known
};

enum class Change { faster, slower, unchanged, within_noise, cannot_tell };
std::string_view name(Change change);  // "within noise"

// a - b in microseconds: negative where `a` is faster.
struct Difference {
  std::string name;
  double a_us = 0;
  double b_us = 0;
  double delta_us() const { return a_us - b_us; }
  Change change = Change::cannot_tell;
};

struct Comparison {
  ComparedRun a, b;
  Difference wall;  // medians of the samples, else the recorded iterations' walls
  // 95% bootstrap interval of the difference of the medians; none where a side has too few samples.
  struct Interval {
    double low_us = 0;
    double high_us = 0;
  };
  std::optional<Interval> interval;
  // 95% of pairs of single iterations, one of each run, differ by no more than this from the difference of
  // the medians. A step comes from one iteration each, so its change counts beyond it. None: not known.
  std::optional<double> iteration_noise_us;
  // Steps of the critical paths that either has, largest change first; they add up to the difference of the
  // recorded iterations' walls. Empty where a side has no timeline.
  std::vector<Difference> steps;
  std::vector<Difference>
      uses;  // the accounting, as mean time per SM; adds up to the same difference
  std::string headline;
  std::vector<std::string> caveats;
};

// "" where both ran the same problem, else how the problems differ: "the shapes differ: ... against ...".
std::string unlike(const ComparedRun& a, const ComparedRun& b);

// Fewer samples than this on a side give no interval: the bootstrap would know too little of the tails.
inline constexpr std::size_t kLeastSamples = 8;

// Compares whatever it is given; the caller has looked at unlike(). Deterministic.
Comparison compare(ComparedRun a, ComparedRun b);

// The `--json` form; times in us.
std::string to_json(const Comparison& comparison);

}  // namespace fusescope::analysis
