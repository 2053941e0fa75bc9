#pragma once
// The tables of a report, one function each; both renderers show the same ones.

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "reports/findings.hpp"
#include "reports/report.hpp"
#include "reports/table.hpp"

namespace fusescope::reports {

Table ladder_table(const ReportInput& input);
Table published_table(const ReportInput& input);
Table top_table(const ReportInput& input, const Findings& findings);
Table failed_table(const Findings& findings);
Table accounting_table(const ChosenRun& run);
Table path_table(const ChosenRun& run);
Table role_table(const ChosenRun& run);  // the accounting by role, over ranks
Table exposure_table(const ChosenRun& run);
Table rungs_table(const ChosenRun& run);  // empty where the rungs were not sampled
std::vector<std::string> exposure_sentences(const ChosenRun& run);  // agreement, whole waves, noise
Table wait_table(const ChosenRun& run);    // waiting rank and role, kind of wait, rank waited for
Table blame_matrix(const ChosenRun& run);  // waiting rank x source rank
Table blame_table(const ChosenRun& run);   // the longest gate waits, one by one
// Rows between GPUs by the rank whose link they share; empty where no link has two users. Its last column
// is the page's: the rows on the way along the span.
Table link_table(const ChosenRun& run, timeline::Kind kind);
std::string link_statement(const ChosenRun& run, timeline::Kind kind);  // "" where it is empty
const analysis::LinkLoad& link_load(const ChosenRun& run, timeline::Kind kind);
double most_on_the_way(const analysis::LinkLoad& load);  // rows, in any slice of any rank
Table run_table(const ReportInput& input);               // command, commit, date, problem, ...
Table profile_table(const ReportInput& input);

// Stacked steps of the fastest configs and the serial layer.
struct StepRows {
  std::vector<const ReportTrial*> trials;  // fastest first; the serial layer last
  std::vector<std::string> names;          // one a trial: "#12", "serial"
  std::vector<std::string> details;        // the values of the axes, "8 / 12 / true"
  std::vector<std::string> steps;          // present in any trial, in the order of an iteration
  double at(std::size_t trial, std::size_t step) const;
};
StepRows step_rows(const ReportInput& input, const Findings& findings);
Table steps_table(const ReportInput& input, const StepRows& rows);
// The step of that name, so that it can be coloured; none for a name that analysis does not know.
std::optional<analysis::Step> step_named(const std::string& name);

// The smallest wall at each pair of values of two axes, over all other knobs.
struct Heatmap {
  std::string x, y;
  std::vector<std::string> x_values, y_values;
  std::vector<std::optional<double>> wall_us;  // [y][x]
};
std::optional<Heatmap> heatmap(const ReportInput& input, const Findings& findings);
Table heatmap_table(const Heatmap& map);

// The critical path as runs of one step at a picture's resolution: each of `columns` equal slices
// of the wall shows the step that fills most of it. For drawing only; sums come from by_step.
struct StripRun {
  double begin = 0, end = 0;  // 0..1 of the wall
  analysis::Step step = analysis::Step::launch_gap;
};
std::vector<StripRun> path_strip(const ChosenRun& run, int columns);

}  // namespace fusescope::reports
