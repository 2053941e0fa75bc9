// The pictures of the Markdown report and of the README.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/error.hpp"
#include "reports/findings.hpp"
#include "reports/format.hpp"
#include "reports/gnuplot.hpp"
#include "reports/palette.hpp"
#include "reports/report.hpp"
#include "reports/sections.hpp"

namespace fusescope::reports {

namespace {

constexpr const char* kWall = "#dbe7f1";
constexpr const char* kSerialWall = "#858f9b";
constexpr const char* kGain = "#00694c";
constexpr const char* kLoss = "#b03a00";

std::string rgb(const Color& of) {
  return std::string(of.light);
}

Panel ladder_panel(const ReportInput& input, const std::string& word) {
  Panel panel;
  panel.title = fmt::format("Ladder: wall after each feature, {}", word);
  panel.x_label = "wall [µs], " + word;
  double before = 0;
  double longest = 0;
  for (const analysis::LadderStep& step : input.ladder.steps) {
    if (!step.ran) {
      continue;
    }
    const auto row = static_cast<double>(panel.rows.size());
    const bool first = panel.rows.empty();
    panel.rows.push_back(step.name);
    panel.boxes.push_back({row, 0, step.wall_us, 0.36, first ? kSerialWall : kWall});
    if (first) {
      panel.marker = step.wall_us;
    } else {
      panel.boxes.push_back({row, std::min(before, step.wall_us), std::max(before, step.wall_us),
                             0.36, step.wall_us <= before ? kGain : kLoss});
    }
    panel.texts.push_back(
        {row, std::max(before, step.wall_us),
         us(step.wall_us) + " µs" + (first ? "" : "  " + signed_percent(step.against_serial))});
    longest = std::max({longest, before, step.wall_us});
    before = step.wall_us;
  }
  panel.keys = {{"gain against the rung before", kGain}, {"loss", kLoss}};
  panel.x_max = longest * 1.24;
  return panel;
}

Panel path_panel(const ChosenRun& run, const std::string& word) {
  Panel panel;
  panel.title = fmt::format("Critical path of {}: {} µs, {}", run.name,
                            us(static_cast<double>(run.timeline.wall_ns()) / 1000), word);
  panel.x_label = "time [µs], " + word;
  panel.rows = {"critical path"};
  const double wall = static_cast<double>(run.timeline.wall_ns()) / 1000;
  for (const StripRun& piece : path_strip(run, 1200)) {
    panel.boxes.push_back({0, piece.begin * wall, piece.end * wall, 0.5, rgb(color(piece.step))});
  }
  for (int i = 0; i < analysis::kSteps; ++i) {
    const std::int64_t time = run.attribution.path.by_step[static_cast<std::size_t>(i)];
    if (static_cast<double>(time) >= 0.002 * wall * 1000) {
      const auto step = static_cast<analysis::Step>(i);
      panel.keys.emplace_back(
          fmt::format("{} {} µs", analysis::name(step), us(static_cast<double>(time) / 1000)),
          rgb(color(step)));
    }
  }
  panel.x_max = wall;
  return panel;
}

Panel steps_panel(const ReportInput& input, const StepRows& rows, const std::string& word) {
  Panel panel;
  panel.title = fmt::format("Critical path by step, fastest configs first, {}", word);
  panel.x_label = "critical path [µs], " + word;
  double longest = 0;
  for (std::size_t i = 0; i < rows.trials.size(); ++i) {
    panel.rows.push_back(rows.trials[i]->serial || input.axes.empty()
                             ? rows.names[i]
                             : rows.names[i] + "  " + rows.details[i]);
    double at = 0;
    for (std::size_t s = 0; s < rows.steps.size(); ++s) {
      const auto step = step_named(rows.steps[s]);
      const double time = rows.at(i, s);
      panel.boxes.push_back({static_cast<double>(i), at, at + time, 0.38,
                             rgb(color(step.value_or(analysis::Step::launch_gap)))});
      at += time;
    }
    panel.texts.push_back({static_cast<double>(i), at, us(at) + " µs"});
    longest = std::max(longest, at);
  }
  for (const std::string& name : rows.steps) {
    panel.keys.emplace_back(name,
                            rgb(color(step_named(name).value_or(analysis::Step::launch_gap))));
  }
  panel.x_max = longest * 1.14;
  return panel;
}

Panel accounting_panel(const ChosenRun& run, const std::string& word) {
  Panel panel;
  panel.title = fmt::format("What the SMs of each rank did, {}", word);
  panel.x_label = "share of SMs x wall [%], " + word;
  std::array<bool, analysis::kUses> present{};
  for (const analysis::RankAccounting& rank : run.attribution.accounting.ranks) {
    const auto row = static_cast<double>(panel.rows.size());
    panel.rows.push_back(fmt::format("rank {}", rank.rank));
    double at = 0;
    for (std::size_t i = 0; i < rank.by_use.size() && rank.area_ns > 0; ++i) {
      const double share =
          100 * static_cast<double>(rank.by_use[i]) / static_cast<double>(rank.area_ns);
      panel.boxes.push_back({row, at, at + share, 0.38, rgb(color(static_cast<analysis::Use>(i)))});
      at += share;
      present[i] = present[i] || rank.by_use[i] != 0;
    }
  }
  for (std::size_t i = 0; i < present.size(); ++i) {
    if (present[i]) {
      const auto use = static_cast<analysis::Use>(i);
      panel.keys.emplace_back(std::string(analysis::name(use)), rgb(color(use)));
    }
  }
  panel.x_max = 100;
  return panel;
}

// A colour on white, at a share of its strength.
std::string shade(const std::string& rgb_of, double strength) {
  std::string out = "#";
  for (std::size_t i = 1; i < rgb_of.size(); i += 2) {
    const auto full = static_cast<double>(std::stoi(rgb_of.substr(i, 2), nullptr, 16));
    out += fmt::format("{:02x}", static_cast<int>(std::lround(255 - (255 - full) * strength)));
  }
  return out;
}

Panel links_panel(const ChosenRun& run, timeline::Kind kind, const std::string& word) {
  const bool pulls = kind == timeline::Kind::pull;
  const analysis::LinkLoad& load = link_load(run, kind);
  Panel panel;
  panel.title = fmt::format("Rows on the way {} each rank, {}", pulls ? "from" : "to", word);
  panel.x_label = "time [µs], " + word;
  const double begin = static_cast<double>(load.begin_ns - run.timeline.begin_ns) / 1000;
  const double slice =
      static_cast<double>(load.end_ns - load.begin_ns) / 1000 / analysis::kLoadSlices;
  const double most = most_on_the_way(load);
  for (const analysis::LinkEnd& end : load.ranks) {
    const auto row = static_cast<double>(panel.rows.size());
    panel.rows.push_back(fmt::format("rank {}", panel.rows.size()));
    for (std::size_t i = 0; i < end.load.size(); ++i) {
      const double from = begin + slice * static_cast<double>(i);
      panel.boxes.push_back(
          {row, from, from + slice, 0.42, shade(rgb(color(kind)), end.load[i] / most)});
    }
  }
  panel.keys = {{fmt::format("{:.0f} rows on the way", most), rgb(color(kind))},
                {"half as many", shade(rgb(color(kind)), 0.5)}};
  panel.x_max = static_cast<double>(run.timeline.wall_ns()) / 1000;
  return panel;
}

bool has_path(const ReportInput& input) {
  return input.chosen && input.chosen->attribution.refusal.empty() &&
         input.chosen->timeline.wall_ns() > 0;
}

}  // namespace

Charts draw_charts(const ReportInput& input, const std::string& gnuplot) {
  Charts charts;
  const std::string program = find_gnuplot(gnuplot);
  if (program.empty()) {
    charts.missing =
        "gnuplot was not found, so the charts are left out; the tables have all of their numbers";
    return charts;
  }
  const Findings findings = find(input);
  const StepRows rows = step_rows(input, findings);
  if (!input.ladder.steps.empty()) {
    charts.svg["ladder"] = draw_svg({ladder_panel(input, findings.word)}, program);
  }
  if (!rows.trials.empty()) {
    charts.svg["steps"] = draw_svg({steps_panel(input, rows, findings.word)}, program);
  }
  if (has_path(input)) {
    charts.svg["path"] = draw_svg({path_panel(*input.chosen, findings.word)}, program);
    charts.svg["accounting"] = draw_svg({accounting_panel(*input.chosen, findings.word)}, program);
    std::vector<Panel> links;
    for (const timeline::Kind kind : {timeline::Kind::pull, timeline::Kind::push}) {
      if (!link_statement(*input.chosen, kind).empty()) {
        links.push_back(links_panel(*input.chosen, kind, findings.word));
      }
    }
    if (!links.empty()) {
      charts.svg["links"] = draw_svg(links, program);
    }
  }
  return charts;
}

std::string draw_summary_svg(const ReportInput& input, const std::string& gnuplot) {
  const std::string program = find_gnuplot(gnuplot);
  if (program.empty()) {
    throw InputError(
        {"gnuplot", "", "not found", "gnuplot on PATH, or its path in FUSESCOPE_GNUPLOT"});
  }
  const std::string word(timeline::name(input.provenance));
  std::vector<Panel> panels;
  if (!input.ladder.steps.empty()) {
    panels.push_back(ladder_panel(input, input.source.empty() ? word : input.source));
  }
  if (has_path(input)) {
    panels.push_back(path_panel(*input.chosen, word));
  }
  if (panels.empty()) {
    throw InputError({"", "", "the report has neither a ladder nor an explained run to draw",
                      "a sweep with a ladder, or a chosen run"});
  }
  return draw_svg(panels, program);
}

}  // namespace fusescope::reports
