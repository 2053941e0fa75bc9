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
  // Fused configs of the search that ran, fastest first, each config once; the ladder's where nothing
  // was searched.
  std::vector<const ReportTrial*> ranked;
  // The ladder's fastest rung where it beats the search's best by more than a tie, else null: the
  // search's space then misses the best known config.
  const ReportTrial* faster_rung = nullptr;
  std::vector<const ReportTrial*> failed;  // in the sweep's order
  std::size_t tied = 0;                    // leading configs that noise cannot tell from the best
  std::string tie_rule;                    // what counts as a tie, in words
  std::vector<AxisInfluence> axes;         // most influential first; axes of one value are left out
  std::string headline;
  std::vector<std::string> verdict;  // sentences
  std::vector<std::string> next;     // what to try

  const ReportTrial* best() const { return ranked.empty() ? nullptr : ranked.front(); }
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
