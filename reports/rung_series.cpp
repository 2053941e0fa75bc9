#include "reports/rung_series.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "reports/format.hpp"
#include "reports/gnuplot.hpp"
#include "reports/report_files.hpp"
#include "reports/table.hpp"

namespace fusescope::reports {

namespace {

using analysis::Estimate;
using analysis::RungCost;
using analysis::Rungs;

struct Part {
  const char* name;
  const char* rgb;
  Estimate (*of)(const Rungs&);
};

template <RungCost which>
Estimate cost(const Rungs& rungs) {
  return rungs.costs[static_cast<std::size_t>(which)];
}

// Colours of Okabe and Ito, readable by colour-blind people, and in print by their order.
constexpr Part kParts[] = {
    {"compute only, all SMs", "#dbe7f1", [](const Rungs& rungs) { return rungs.compute(); }},
    {"SM tax", "#0072b2", cost<RungCost::sm_tax>},
    {"contention", "#e69f00", cost<RungCost::contention>},
    {"waiting", "#d55e00", [](const Rungs& rungs) { return rungs.waiting; }},
    {"tail", "#858f9b", cost<RungCost::tail>},
};

std::string cell(const Estimate& estimate, bool is_sign_shown) {
  return (is_sign_shown ? signed_us(estimate.us) : us(estimate.us)) +
         (estimate.high > estimate.low ? " ± " + us(estimate.half()) : "");
}

Table series_table(const SeriesInput& input) {
  const analysis::RungSeries& series = input.series;
  Table table;
  table.columns = {{series.knob}};
  const std::size_t kernels = series.rungs.front().waves.size();
  for (std::size_t kernel = 0; kernel < kernels; ++kernel) {
    table.columns.push_back({"waves of " + series.rungs.front().waves[kernel].kernel});
  }
  for (const Part& part : kParts) {
    table.columns.push_back({std::string(part.name) + " [µs]", true});
  }
  table.columns.push_back({"full layer [µs]", true});
  for (std::size_t i = 0; i < series.rungs.size(); ++i) {
    const Rungs& rungs = series.rungs[i];
    std::vector<Cell> row = {series.values[i]};
    row.front().strong = true;
    for (const analysis::KernelWaves& waves : rungs.waves) {
      row.push_back(fmt::format("{} on {} SMs", waves.waves_split(), waves.sms_split));
    }
    for (const Part& part : kParts) {
      row.push_back(cell(part.of(rungs), &part != &kParts[0]));
    }
    row.push_back(cell(rungs.full(), false));
    table.rows.push_back(std::move(row));
  }
  return table;
}

Panel series_panel(const SeriesInput& input) {
  const std::string word(timeline::name(input.provenance));
  Panel panel;
  panel.title = fmt::format("What each {} costs, {}", input.series.knob, word);
  panel.x_label = "wall [µs], " + word;
  for (const Part& part : kParts) {
    panel.keys.emplace_back(part.name, part.rgb);
  }
  double longest = 0;
  for (std::size_t i = 0; i < input.series.rungs.size(); ++i) {
    const Rungs& rungs = input.series.rungs[i];
    panel.rows.push_back(input.series.values[i]);
    double at = 0;
    double end = 0;
    for (const Part& part : kParts) {  // a negative cost lies over what it takes back
      const double next = at + part.of(rungs).us;
      panel.boxes.push_back(
          {static_cast<double>(i), std::min(at, next), std::max(at, next), 0.36, part.rgb});
      at = next;
      end = std::max(end, at);
    }
    panel.texts.push_back({static_cast<double>(i), end, us(rungs.full().us) + " µs"});
    longest = std::max(longest, end);
  }
  panel.x_max = longest * 1.14;
  return panel;
}

}  // namespace

std::string render_series(const SeriesInput& input, bool picture) {
  const std::string word(timeline::name(input.provenance));
  const analysis::RungSeries& series = input.series;
  std::string out = fmt::format("<!-- {} -->\n# SM tax, contention and waiting by {} ({})\n\n",
                                kMark, escape_markdown(series.knob), word);
  out += fmt::format("{}. {}; {}{}.\n\n", escape_markdown(input.problem),
                     escape_markdown(input.config), escape_markdown(input.source),
                     input.sampling.empty() ? "" : ", " + escape_markdown(input.sampling));
  if (picture) {
    out += fmt::format("![Cost of each {} ({})](rungs.svg)\n\n", series.knob, word);
  }
  out +=
      "The same layer with one cost after the other taken away; what a rung adds to the one before "
      "is one cost. Waiting is the arrival limit and the ordering loss together. ± is half a 95% "
      "bootstrap interval.\n\n";
  out += to_markdown(series_table(input)) + "\n";
  for (const std::string& sentence : analysis::wave_steps(series)) {
    out += "- " + escape_markdown(sentence) + "\n";
  }
  out += "\n**Each run by itself**\n\n";
  for (std::size_t i = 0; i < series.rungs.size(); ++i) {
    for (const std::string& sentence : series.rungs[i].sentences) {
      out +=
          fmt::format("- `{}={}`: {}\n", series.knob, series.values[i], escape_markdown(sentence));
    }
  }
  out += fmt::format("\nRuns: {}. {}, {}:\n\n    {}\n", fmt::join(input.folders, ", "),
                     escape_markdown(input.fusescope), input.date, input.command);
  return out;
}

ReportFiles write_series_report(const SeriesInput& input, const std::string& directory) {
  ReportFiles written;
  std::map<std::string, std::string> files;
  const std::string gnuplot = find_gnuplot("");
  if (gnuplot.empty()) {
    written.note = "gnuplot was not found, so the picture is left out";
  } else {
    files["rungs.svg"] = marked_svg(draw_svg({series_panel(input)}, gnuplot));
  }
  files["report.md"] = render_series(input, !gnuplot.empty());
  written.paths = write_marked_files(files, directory);
  return written;
}

}  // namespace fusescope::reports
