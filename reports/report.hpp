#pragma once
// What a report is made of, and the renderers that turn it into files.
//
// The model is plain data: whoever ran the sweep (the CLI) fills a ReportInput from trials, ladder,
// profile and one analysed timeline; nothing here runs an engine or reads a log. Times are
// microseconds unless a name says otherwise. Text fields may hold anything; both renderers escape
// them.

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "analysis/advice.hpp"
#include "analysis/compare.hpp"
#include "analysis/ladder.hpp"
#include "analysis/rungs.hpp"
#include "analysis/summary.hpp"
#include "timeline/timeline.hpp"

namespace fusescope::reports {

// One config of the sweep, in the words of its trial log.
struct ReportTrial {
  int id = 0;
  std::string label;                         // "" or the rung's name
  std::string config;                        // describe(config)
  std::map<std::string, std::string> knobs;  // every knob's value as users write it
  std::string verdict = "ok";                // name(sweep::Verdict)
  std::string reason;                        // why, when not ok
  bool serial = false;
  double median_us = 0;                    // by the search's samples
  double half_ci_us = 0;                   // 95%, of the median; 0 for a simulation
  std::map<std::string, double> steps_us;  // critical path by name(analysis::Step)
  double timeline_wall_us = 0;             // the wall that steps_us partitions; 0: none recorded
  double exposed_us = 0;                   // exposed communication by critical path
  // Of a finalist: timed again in turns with the others. These decide which config is the best.
  struct Turns {
    double median_us = 0;
    double half_ci_us = 0;
    bool ties = false;  // with the best of them, by the sweep's comparison of the rounds
  };
  std::optional<Turns> turns;

  bool ok() const { return verdict == "ok"; }
  double wall_us() const { return turns ? turns->median_us : median_us; }
  double wall_half_us() const { return turns ? turns->half_ci_us : half_ci_us; }
  // Beside another trial: by the turns if both have them, else by the search, which came earlier.
  double wall_us(const ReportTrial& beside) const { return beside.turns ? wall_us() : median_us; }
  double wall_half_us(const ReportTrial& beside) const {
    return beside.turns ? wall_half_us() : half_ci_us;
  }
};

// A figure that others published for the same layer, beside ours.
struct PublishedFigure {
  std::string name;  // "whole layer against serial, tuned"
  std::string unit;  // "us", "%"
  double published = 0;
  std::optional<double> ours;  // none: this sweep does not yield it
  bool fitted = false;         // the profile was fitted to it, so that agreement proves nothing
  std::string note;            // where it was published, how ours was obtained
};

// A number of the device profile (or of the measurement set-up) and where it comes from.
struct ProfileNumber {
  std::string name;
  std::string value;  // as text, in `unit`
  std::string unit;
  std::string origin;  // "measured", "datasheet", "assumed", "fitted"
  std::string source;
};

// The run that is explained in depth.
struct ChosenRun {
  std::string name;                      // "the best config", "the run": as a sentence names it
  std::string why;                       // how it was chosen
  timeline::Timeline timeline;           // sorted, see timeline::sort_events
  analysis::Attribution attribution;     // attribute(timeline)
  std::optional<analysis::Rungs> rungs;  // of the same config, where they were sampled
};

struct ReportInput {
  std::string name;     // of the sweep
  std::string why;      // the sweep file's own words on what it is for; may be empty
  std::string problem;  // describe(problem)
  timeline::Provenance provenance = timeline::Provenance::simulated;
  std::string source;    // "simulated on rtx-pro-5000-pcie5", "measured on 2 x NVIDIA H200"
  std::string sampling;  // "iterations back to back": how times were measured; "" where none was
  std::string engine;    // "sim", "cuda"
  std::string profile;   // the profile's name; "" where there is none
  std::string profile_about;  // its own sentence on what it stands for
  std::vector<ProfileNumber> profile_numbers;
  std::string command;            // the command line that ran the sweep
  std::string date;               // ISO 8601
  std::string fusescope;          // that made the data: "fusescope 0.1.0 (1a2b3c4d5e6f)"
  std::string rendered_by;        // that made the report of it
  std::vector<std::string> axes;  // names of the swept knobs, in the sweep's order
  std::vector<ReportTrial> trials;
  analysis::Ladder ladder;  // empty: the sweep had none
  std::vector<PublishedFigure> published;
  std::optional<ChosenRun> chosen;
  std::optional<analysis::Advice> advice;          // for the chosen run
  std::optional<analysis::Comparison> comparison;  // of the chosen run with another
  std::vector<std::string> notes;                  // anything else a reader must know
  std::map<std::string, std::string> files;  // what lies beside the report: "trial log" -> path
};

// One HTML page that needs nothing else: style, scripts, charts and timeline are inside.
std::string render_html(const ReportInput& input);

// Charts as SVG, drawn by gnuplot. Keys: "ladder", "path", "steps", "accounting", "links".
struct Charts {
  std::map<std::string, std::string> svg;
  std::string missing;  // why there is none, in words; "" when all could be drawn
};
// `gnuplot`: the program; "" looks on PATH and in FUSESCOPE_GNUPLOT.
Charts draw_charts(const ReportInput& input, const std::string& gnuplot = "");

// Refers to charts as `<key>.svg` beside it; without them the tables stand alone, and it says so.
std::string render_markdown(const ReportInput& input, const Charts& charts);

struct ReportFiles {
  std::vector<std::string> paths;  // what was written
  std::string note;                // e.g. that gnuplot is missing and so are the SVG charts
};
// Writes report.html, report.md and the SVG charts into `directory`, which is made if it is
// missing. A file of that name that fusescope did not write is never replaced. Throws InputError on
// that and where nothing can be written.
ReportFiles write_report(const ReportInput& input, const std::string& directory);

// The README's picture: the ladder above the chosen run's critical path, as one SVG. Throws
// InputError if gnuplot is missing or the input has neither.
std::string draw_summary_svg(const ReportInput& input, const std::string& gnuplot = "");

}  // namespace fusescope::reports
