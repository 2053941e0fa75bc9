#include "reports/page_data.hpp"

#include <nlohmann/json.hpp>

#include "reports/palette.hpp"
#include "reports/sections.hpp"

namespace fusescope::reports {

namespace {

using nlohmann::json;

json ladder(const ReportInput& input) {
  json steps = json::array();
  for (const analysis::LadderStep& step : input.ladder.steps) {
    steps.push_back({{"name", step.name},
                     {"ran", step.ran},
                     {"wall", step.wall_us},
                     {"gain", step.gain_us},
                     {"serial", step.against_serial}});
  }
  return steps;
}

json stacked_steps(const ReportInput& input, const Findings& findings) {
  const StepRows rows = step_rows(input, findings);
  json series = json::array();
  for (std::size_t s = 0; s < rows.steps.size(); ++s) {
    std::vector<double> values;
    for (std::size_t i = 0; i < rows.trials.size(); ++i) {
      values.push_back(rows.at(i, s));
    }
    const auto step = step_named(rows.steps[s]);
    series.push_back({{"name", rows.steps[s]},
                      {"color", step ? color(*step).slug : color(analysis::Step::launch_gap).slug},
                      {"values", values}});
  }
  std::vector<std::string> labels;
  for (std::size_t i = 0; i < rows.trials.size(); ++i) {
    labels.push_back(rows.trials[i]->serial ? "serial layer"
                                            : rows.names[i] + "  " + rows.details[i]);
  }
  return {{"labels", labels}, {"series", series}};
}

json accounting(const ReportInput& input) {
  json out = {{"labels", json::array()}, {"series", json::array()}};
  if (!input.chosen) {
    return out;
  }
  const auto& ranks = input.chosen->attribution.accounting.ranks;
  for (const analysis::RankAccounting& rank : ranks) {
    out["labels"].push_back("rank " + std::to_string(rank.rank));
  }
  for (int i = 0; i < analysis::kUses; ++i) {
    const auto use = static_cast<analysis::Use>(i);
    json values = json::array();
    bool any = false;
    for (const analysis::RankAccounting& rank : ranks) {
      const std::int64_t time = rank.by_use[static_cast<std::size_t>(i)];
      any = any || time != 0;
      values.push_back(
          rank.area_ns > 0 ? static_cast<double>(time) / static_cast<double>(rank.area_ns) : 0.0);
    }
    if (any) {
      out["series"].push_back(
          {{"name", analysis::name(use)}, {"color", color(use).slug}, {"values", values}});
    }
  }
  return out;
}

json grid(const ReportInput& input, const Findings& findings) {
  json axes = json::array();
  for (const AxisInfluence& axis : findings.axes) {
    axes.push_back({{"name", axis.axis}, {"explained", axis.explained}, {"values", axis.values}});
  }
  json trials = json::array();
  for (const ReportTrial* trial : swept(input)) {
    json values = json::array();
    for (const AxisInfluence& axis : findings.axes) {
      const auto found = trial->knobs.find(axis.axis);
      values.push_back(found == trial->knobs.end() ? "" : found->second);
    }
    trials.push_back({{"id", trial->id}, {"wall", trial->median_us}, {"values", values}});
  }
  return {{"axes", axes}, {"trials", trials}};
}

}  // namespace

std::string chart_json(const ReportInput& input, const Findings& findings) {
  const json data = {{"word", findings.word},           {"axes", input.axes},
                     {"ladder", ladder(input)},         {"steps", stacked_steps(input, findings)},
                     {"accounting", accounting(input)}, {"grid", grid(input, findings)}};
  // Foreign text may not be UTF-8; "</script>" inside a string would end the element.
  const std::string text = data.dump(-1, ' ', false, json::error_handler_t::replace);
  std::string safe;
  safe.reserve(text.size());
  for (const char c : text) {
    if (c == '<') {
      safe += "\\u003c";
    } else {
      safe += c;
    }
  }
  return safe;
}

}  // namespace fusescope::reports
