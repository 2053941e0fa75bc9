#pragma once
// The report of rungs at several values of one knob: a table, a picture, and which step of the SM tax is a
// whole wave of tiles.

#include <string>
#include <vector>

#include "analysis/rung_series.hpp"
#include "reports/report.hpp"

namespace fusescope::reports {

struct SeriesInput {
  analysis::RungSeries series;
  std::string problem;
  std::string config;  // of the first run; the knob's value changes
  std::string source;
  std::string sampling;  // as ReportInput has it
  timeline::Provenance provenance = timeline::Provenance::simulated;
  std::string command, date, fusescope;
  std::vector<std::string> folders;  // of the runs, one per value
};

std::string render_series(const SeriesInput& input, bool picture);

// Writes report.md and, where gnuplot is found, rungs.svg; as write_report does.
ReportFiles write_series_report(const SeriesInput& input, const std::string& directory);

}  // namespace fusescope::reports
