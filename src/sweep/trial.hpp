#pragma once
// One line of a trial log: a config that was run, and what came of it.

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "layer/config.hpp"

namespace fusescope::sweep {

enum class Verdict { ok, illegal, wrong_output, aborted, crashed, timed_out };
inline constexpr int kVerdicts = static_cast<int>(Verdict::timed_out) + 1;
std::string_view name(Verdict verdict);

struct Trial {
  int id = 0;         // position in the search's order; labelled trials count on their own
  std::string label;  // "" or the rung's name ("serial", "+ pull order")
  Config config;
  Verdict verdict = Verdict::ok;
  std::string reason;           // why, when not ok
  std::string source;           // "simulated on rtx-pro-5000-pcie5"; "" when it never ran
  std::vector<double> wall_us;  // samples, in order
  double median_us = 0;
  double half_ci_us = 0;                   // of the median, 95%; 0 for a simulation without jitter
  std::map<std::string, double> steps_us;  // critical path by step; sums to timeline_wall_us
  double timeline_wall_us = 0;             // of the iteration that steps_us partitions
  double exposed_us = 0;                   // exposed communication by critical path
  double seconds = 0;                      // what the trial cost
  bool operator==(const Trial&) const = default;
};

// The trial log's line for a trial, without its newline: a JSON object with every knob of the
// config.
std::string to_line(const Trial& trial);
// Throws InputError naming `file` and `place` ("line 12") when the line is not a whole trial.
Trial trial_from_line(std::string_view line, const std::string& file, const std::string& place);

}  // namespace fusescope::sweep
