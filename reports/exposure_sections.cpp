// Exposed communication by every view, and the counterfactual rungs.

#include <fmt/format.h>

#include "reports/format.hpp"
#include "reports/sections.hpp"

namespace fusescope::reports {

namespace {

std::string interval(const analysis::Estimate& estimate) {
  return estimate.high > estimate.low ? fmt::format("{} to {}", us(estimate.low), us(estimate.high))
                                      : "";
}

}  // namespace

Table exposure_table(const ChosenRun& run) {
  Table table;
  table.caption = "Exposed communication by each view";
  table.columns = {{"view"},
                   {"time [µs]", true},
                   {"share of the wall", true},
                   {"error [µs]", true},
                   {"of what the error is made"}};
  const analysis::Exposure& exposure = run.attribution.exposure;
  for (const analysis::ExposedView& view : exposure.views) {
    if (!view.missing.empty()) {
      table.rows.push_back({view.view, "none", "", "", view.missing});
      continue;
    }
    const double share = exposure.wall_us > 0 ? view.us / exposure.wall_us : 0;
    table.rows.push_back({view.view, us(view.us), percent(share),
                          view.error_us > 0 ? us(view.error_us) : "",
                          view.error_us > 0 ? view.of_error : ""});
  }
  return table;
}

Table rungs_table(const ChosenRun& run) {
  Table table;
  table.caption = "Counterfactual rungs: what each cost adds to the wall";
  table.columns = {
      {"rung"}, {"time [µs]", true}, {"95% interval [µs]", true}, {"share of the wall", true}};
  if (!run.rungs) {
    return table;
  }
  const analysis::Rungs& rungs = *run.rungs;
  const auto row = [&](const std::string& called, const analysis::Estimate& estimate) {
    const double wall = rungs.full().us;
    table.rows.push_back(
        {called, us(estimate.us), interval(estimate), wall > 0 ? percent(estimate.us / wall) : ""});
  };
  row(std::string(analysis::rung_name(kRungs.front())), rungs.compute());
  for (int i = 0; i < analysis::kRungCosts; ++i) {
    row(fmt::format("+ {}", analysis::name(static_cast<analysis::RungCost>(i))),
        rungs.costs[static_cast<std::size_t>(i)]);
  }
  table.total = {"full layer", us(rungs.full().us), interval(rungs.full()), percent(1)};
  return table;
}

std::vector<std::string> exposure_sentences(const ChosenRun& run) {
  const analysis::Exposure& exposure = run.attribution.exposure;
  std::vector<std::string> sentences = {exposure.statement};
  for (const std::string& warning : exposure.warnings) {
    sentences.push_back("Warning: " + warning);
  }
  if (run.rungs) {
    sentences.insert(sentences.end(), run.rungs->sentences.begin(), run.rungs->sentences.end());
  }
  return sentences;
}

}  // namespace fusescope::reports
