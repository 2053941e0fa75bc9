#include "reports/sections.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "reports/format.hpp"
#include "reports/palette.hpp"

namespace fusescope::reports {

namespace {

constexpr std::size_t kStepConfigs = 12;
constexpr std::size_t kTopShown = 12;
constexpr std::size_t kFailedShown = 8;

std::string axis_values(const ReportTrial& trial, const std::vector<std::string>& axes) {
  std::string out;
  for (const std::string& axis : axes) {
    const auto found = trial.knobs.find(axis);
    out += fmt::format("{}{}", out.empty() ? "" : " / ",
                       found == trial.knobs.end() ? "?" : found->second);
  }
  return out;
}

std::string trial_name(const ReportTrial& trial) {
  return trial.serial ? "serial" : fmt::format("#{}", trial.id);
}

}  // namespace

Table ladder_table(const ReportInput& input) {
  Table table;
  table.caption = "The ladder, one feature more per rung";
  table.columns = {{"rung"},
                   {"wall [µs]", true},
                   {"± 95% [µs]", true},
                   {"gain [µs]", true},
                   {"against serial", true},
                   {"config"}};
  const bool intervals =
      std::any_of(input.ladder.steps.begin(), input.ladder.steps.end(),
                  [](const analysis::LadderStep& s) { return s.half_ci_us > 0; });
  if (!intervals) {
    table.columns.erase(table.columns.begin() + 2);
  }
  for (std::size_t i = 0; i < input.ladder.steps.size(); ++i) {
    const analysis::LadderStep& step = input.ladder.steps[i];
    std::vector<Cell> row = {step.name, step.ran ? us(step.wall_us) : "failed"};
    if (intervals) {
      row.push_back(step.ran ? us(step.half_ci_us) : "");
    }
    const bool compared = i > 0 && step.ran;
    row.push_back(compared ? signed_us(step.gain_us) + (step.tie ? " (tie)" : "") : "");
    row.push_back(i == 0 ? "baseline" : compared ? signed_percent(step.against_serial) : "");
    row.push_back(step.config);
    row.front().strong = true;
    row.back().code = true;
    table.rows.push_back(std::move(row));
  }
  return table;
}

Table published_table(const ReportInput& input) {
  Table table;
  table.caption = "Published figures beside this sweep's";
  table.columns = {
      {"figure"}, {"published", true}, {"this sweep", true}, {"difference", true}, {"role"},
      {"note"}};
  for (const PublishedFigure& figure : input.published) {
    const auto with_unit = [&](double value) {
      if (figure.unit == "%") {
        return value == std::floor(value) ? number(value) + "%" : percent(value / 100);
      }
      return number(value) + " " + (figure.unit == "us" ? "µs" : figure.unit);
    };
    std::string difference;
    if (figure.ours && figure.unit == "%") {
      difference = signed_us(*figure.ours - figure.published) + " points";
    } else if (figure.ours && figure.published != 0) {
      difference = signed_percent(*figure.ours / figure.published - 1);
    }
    table.rows.push_back({figure.name, with_unit(figure.published),
                          figure.ours ? with_unit(*figure.ours) : "not obtained", difference,
                          !figure.ours    ? "none"
                          : figure.fitted ? "fitted: proves nothing"
                                          : "prediction",
                          figure.note});
    table.rows.back()[4].strong = figure.fitted;
  }
  return table;
}

Table top_table(const ReportInput& input, const Findings& findings) {
  Table table;
  table.caption = "Configs by wall, fastest first";
  table.columns = {{"place"}, {"trial"}};
  for (const std::string& axis : input.axes) {
    table.columns.push_back({axis, true});
  }
  const bool intervals = std::any_of(findings.ranked.begin(), findings.ranked.end(),
                                     [](const ReportTrial* t) { return t->half_ci_us > 0; });
  table.columns.push_back({"wall [µs]", true});
  if (intervals) {
    table.columns.push_back({"± 95% [µs]", true});
  }
  table.columns.push_back({"to best", true});
  if (findings.serial != nullptr) {
    table.columns.push_back({"against serial", true});
  }
  table.columns.push_back({"exposed [µs]", true});
  table.shown = kTopShown;
  for (std::size_t i = 0; i < findings.ranked.size(); ++i) {
    const ReportTrial& trial = *findings.ranked[i];
    const bool leads = findings.ties[i];
    const bool tie = leads && findings.tied > 1;
    std::vector<Cell> row = {tie ? fmt::format("{} (tie)", i + 1) : fmt::format("{}", i + 1),
                             trial.label.empty() ? fmt::format("#{}", trial.id)
                                                 : fmt::format("#{} {}", trial.id, trial.label)};
    row.front().strong = leads;
    for (const std::string& axis : input.axes) {
      const auto found = trial.knobs.find(axis);
      row.push_back(found == trial.knobs.end() ? "" : found->second);
    }
    row.push_back(us(trial.wall_us()));
    row.back().strong = leads;
    if (intervals) {
      row.push_back(us(trial.wall_half_us()));
    }
    row.push_back(i == 0 ? "best" : signed_percent(findings.to_best(trial) - 1));
    if (findings.serial != nullptr) {
      row.push_back(signed_percent(findings.to_serial() * findings.to_best(trial) - 1));
    }
    row.push_back(trial.timeline_wall_us > 0 ? us(trial.exposed_us) : "-");
    table.rows.push_back(std::move(row));
  }
  return table;
}

Table failed_table(const Findings& findings) {
  Table table;
  table.caption = "Configs that could not run or failed";
  table.columns = {{"trial"}, {"verdict"}, {"reason"}, {"config"}};
  table.shown = kFailedShown;
  for (const ReportTrial* trial : findings.failed) {
    table.rows.push_back({fmt::format("#{}", trial->id), trial->verdict,
                          trial->reason.empty() ? "no reason recorded" : trial->reason,
                          trial->config});
    table.rows.back().back().code = true;
  }
  return table;
}

std::optional<analysis::Step> step_named(const std::string& name) {
  for (int i = 0; i < analysis::kSteps; ++i) {
    if (analysis::name(static_cast<analysis::Step>(i)) == name) {
      return static_cast<analysis::Step>(i);
    }
  }
  return std::nullopt;
}

double StepRows::at(std::size_t trial, std::size_t step) const {
  const auto found = trials[trial]->steps_us.find(steps[step]);
  return found == trials[trial]->steps_us.end() ? 0 : found->second;
}

StepRows step_rows(const ReportInput& input, const Findings& findings) {
  StepRows rows;
  for (const ReportTrial* trial : findings.ranked) {
    if (!trial->steps_us.empty() && rows.trials.size() < kStepConfigs) {
      rows.trials.push_back(trial);
    }
  }
  if (findings.serial != nullptr && !findings.serial->steps_us.empty()) {
    rows.trials.push_back(findings.serial);
  }
  std::vector<std::string> present;
  for (const ReportTrial* trial : rows.trials) {
    rows.names.push_back(trial_name(*trial));
    rows.details.push_back(trial->serial ? "serial layer" : axis_values(*trial, input.axes));
    for (const auto& [step, time] : trial->steps_us) {
      if (time > 0 && std::find(present.begin(), present.end(), step) == present.end()) {
        present.push_back(step);
      }
    }
  }
  std::sort(present.begin(), present.end(), [](const std::string& a, const std::string& b) {
    const auto place = [](const std::string& name) {
      const auto step = step_named(name);
      return step ? static_cast<int>(*step) : analysis::kSteps;
    };
    return std::pair(place(a), a) < std::pair(place(b), b);
  });
  rows.steps = std::move(present);
  return rows;
}

Table steps_table(const ReportInput& input, const StepRows& rows) {
  Table table;
  table.caption = "Critical path by step [µs]; each column sums to its iteration's wall";
  table.columns = {{"step"}};
  for (std::size_t i = 0; i < rows.trials.size(); ++i) {
    table.columns.push_back({rows.names[i], true});
  }
  std::string order;
  for (const std::string& axis : input.axes) {
    order += (order.empty() ? "" : " / ") + axis;
  }
  if (!order.empty()) {
    std::vector<Cell> values = {Cell(order)};
    for (std::size_t i = 0; i < rows.trials.size(); ++i) {
      values.push_back(rows.trials[i]->serial ? Cell() : Cell(rows.details[i]));
    }
    table.rows.push_back(std::move(values));
  }
  for (std::size_t s = 0; s < rows.steps.size(); ++s) {
    std::vector<Cell> row = {Cell(rows.steps[s])};
    if (const auto step = step_named(rows.steps[s])) {
      row.front().swatch = std::string(color(*step).slug);
    }
    for (std::size_t i = 0; i < rows.trials.size(); ++i) {
      row.push_back(rows.at(i, s) > 0 ? us(rows.at(i, s)) : "");
    }
    table.rows.push_back(std::move(row));
  }
  table.total = {Cell("sum")};
  for (std::size_t i = 0; i < rows.trials.size(); ++i) {
    double sum = 0;
    for (std::size_t s = 0; s < rows.steps.size(); ++s) {
      sum += rows.at(i, s);
    }
    table.total.push_back(us(sum));
  }
  return table;
}

std::optional<Heatmap> heatmap(const ReportInput& input, const Findings& findings) {
  if (findings.axes.size() < 2) {
    return std::nullopt;
  }
  Heatmap map;
  map.x = findings.axes[0].axis;
  map.y = findings.axes[1].axis;
  map.x_values = findings.axes[0].values;
  map.y_values = findings.axes[1].values;
  map.wall_us.resize(map.x_values.size() * map.y_values.size());
  const auto place = [](const std::vector<std::string>& values, const std::string& value) {
    return static_cast<std::size_t>(std::find(values.begin(), values.end(), value) -
                                    values.begin());
  };
  for (const ReportTrial* trial : swept(input)) {
    const auto x = trial->knobs.find(map.x);
    const auto y = trial->knobs.find(map.y);
    if (x == trial->knobs.end() || y == trial->knobs.end()) {
      continue;
    }
    std::optional<double>& cell = map.wall_us[place(map.y_values, y->second) * map.x_values.size() +
                                              place(map.x_values, x->second)];
    cell = std::min(cell.value_or(trial->median_us), trial->median_us);
  }
  return map;
}

Table heatmap_table(const Heatmap& map) {
  Table table;
  table.caption = fmt::format(
      "Smallest wall [µs] at each {} (across) and {} (down), over all other knobs", map.x, map.y);
  table.columns = {{map.y + " ↓ " + map.x + " →"}};
  for (const std::string& value : map.x_values) {
    table.columns.push_back({value, true});
  }
  for (std::size_t y = 0; y < map.y_values.size(); ++y) {
    std::vector<Cell> row = {Cell(map.y_values[y])};
    for (std::size_t x = 0; x < map.x_values.size(); ++x) {
      const std::optional<double>& wall = map.wall_us[y * map.x_values.size() + x];
      row.push_back(wall ? us(*wall) : "no run");
    }
    table.rows.push_back(std::move(row));
  }
  return table;
}

}  // namespace fusescope::reports
