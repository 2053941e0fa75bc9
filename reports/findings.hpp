#pragma once
// What a report's numbers say: the ranking, the ties, which knob mattered, and the verdict in
// words. Everything here is derived from a ReportInput, which must outlive it.

#include <cstdint>
#include <string>
#include <vector>

#include "reports/report.hpp"

namespace fusescope::reports {

struct AxisInfluence {
  std::string axis;
  double explained = 0;  // share of the walls' variance that this knob's value explains alone, 0..1
  std::vector<std::string> values;  // numbers ascending, then words in order of appearance
};

struct Findings {
  std::string word;  // "simulated" or "measured": goes with every number
  const ReportTrial* serial = nullptr;
  // Fused configs of the search that ran, each config once: finalists by their turns, then the others,
  // fastest first; the ladder's where nothing was searched.
  std::vector<const ReportTrial*> ranked;
  std::size_t finalists = 0;  // of them
  // The ladder's rung of the best config, else null: timed beside the serial layer.
  const ReportTrial* best_rung = nullptr;
  // The ladder's fastest rung of a config that the search did not run, where it beats the search's best by
  // more than a tie, else null: the search's space then misses the best known config.
  const ReportTrial* faster_rung = nullptr;
  std::vector<const ReportTrial*> failed;  // in the sweep's order
  std::vector<bool> ties;                  // of `ranked`: noise cannot tell it from the best
  std::size_t tied = 0;                    // how many, the best included
  std::string tie_rule;                    // what counts as a tie, in words
  std::vector<AxisInfluence> axes;         // most influential first; axes of one value are left out
  std::string headline;
  std::vector<std::string> verdict;  // sentences
  std::vector<std::string> next;     // what to try

  const ReportTrial* best() const { return ranked.empty() ? nullptr : ranked.front(); }
  // Ratios of walls that were measured on the same terms: in turns, by the search, in the ladder. Both want
  // a best; the latter, of the best config to the serial layer, wants that too.
  double to_best(const ReportTrial& trial) const;
  double to_serial() const;
};

// Whether the input is one run's, not a sweep's: then there is nothing to rank.
bool is_single_run(const ReportInput& input);

Findings find(const ReportInput& input);
// Fills headline, verdict and next from the rest.
void put_into_words(const ReportInput& input, Findings& findings);

// The step with the most exposed communication on the critical path; launch_gap if there is none.
analysis::Step most_exposed(const analysis::CriticalPath& path);

// In which unlabelled, successful trials the heatmap and the influence look: the swept grid.
std::vector<const ReportTrial*> swept(const ReportInput& input);
std::vector<std::string> values_of(const std::vector<const ReportTrial*>& trials,
                                   const std::string& axis);

}  // namespace fusescope::reports
