#include "reports/knob_effects.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "reports/format.hpp"

namespace fusescope::reports {

namespace {

std::string value_of(const ReportTrial& trial, const std::string& knob) {
  const auto found = trial.knobs.find(knob);
  return found == trial.knobs.end() ? "" : found->second;
}

// Every knob but one, as a key.
std::string others(const ReportTrial& trial, const std::string& knob) {
  std::string key;
  for (const auto& [name, value] : trial.knobs) {
    key += name == knob ? "" : value + '\n';
  }
  return key;
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return (values[values.size() / 2] + values[(values.size() - 1) / 2]) / 2;
}

using ByOthers = std::map<std::string, std::map<std::string, const ReportTrial*>>;  // then by value

KnobEffect effect(const ByOthers& groups, const ReportTrial& best, const std::string& knob,
                  const std::string& to) {
  KnobEffect effect{knob, value_of(best, knob), to, {}, 0, 0, 0};
  std::vector<double> differences;
  for (const auto& [key, by_value] : groups) {
    const auto a = by_value.find(effect.from);
    const auto b = by_value.find(to);
    if (a != by_value.end() && b != by_value.end()) {
      differences.push_back(b->second->median_us - a->second->median_us);
    }
  }
  const auto group = groups.find(others(best, knob));
  if (group != groups.end() && group->second.contains(to)) {
    const ReportTrial& other = *group->second.at(to);
    effect.at_best_us = other.wall_us(best) - best.wall_us(other);
    effect.half_ci_us = std::hypot(other.wall_half_us(best), best.wall_half_us(other));
  }
  effect.pairs = differences.size();
  effect.median_us = differences.empty() ? 0 : median(std::move(differences));
  return effect;
}

}  // namespace

std::vector<KnobEffect> knob_effects(const ReportInput& input, const Findings& findings) {
  std::vector<KnobEffect> effects;
  if (findings.best() == nullptr) {
    return effects;
  }
  const std::vector<const ReportTrial*> trials = swept(input);
  for (const AxisInfluence& axis : findings.axes) {
    ByOthers groups;
    for (const ReportTrial* trial : trials) {
      groups[others(*trial, axis.axis)].emplace(value_of(*trial, axis.axis), trial);
    }
    for (const std::string& value : axis.values) {
      if (value != value_of(*findings.best(), axis.axis)) {
        KnobEffect each = effect(groups, *findings.best(), axis.axis, value);
        if (each.pairs > 0) {
          effects.push_back(std::move(each));
        }
      }
    }
  }
  return effects;
}

Table knob_effect_table(const ReportInput& input, const Findings& findings) {
  Table table;
  table.caption =
      "What the wall does when one knob alone is turned away from the best config's value";
  table.columns = {{"change"},
                   {"at the best config [µs]", true},
                   {"median over all pairs [µs]", true},
                   {"pairs", true}};
  for (const KnobEffect& each : knob_effects(input, findings)) {
    Cell change(fmt::format("{} {} → {}", each.knob, each.from, each.to));
    change.code = true;
    std::string at_best = "not run";
    if (each.at_best_us) {
      at_best =
          signed_us(*each.at_best_us) + (each.half_ci_us > 0 ? " ± " + us(each.half_ci_us) : "");
    }
    table.rows.push_back(
        {change, at_best, signed_us(each.median_us), count(static_cast<long long>(each.pairs))});
  }
  return table;
}

}  // namespace fusescope::reports
