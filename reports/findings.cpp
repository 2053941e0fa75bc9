#include "reports/findings.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <set>

#include "reports/format.hpp"

namespace fusescope::reports {

namespace {

// Simulated walls carry no noise, but no model is exact: differences below this share are called
// ties.
constexpr double kModelResolution = 0.001;

std::string knob(const ReportTrial& trial, const std::string& name) {
  const auto found = trial.knobs.find(name);
  return found == trial.knobs.end() ? "" : found->second;
}

// Counterfactual studies and injected delays answer other questions than "which config is fastest".
bool comparable(const ReportTrial& trial) {
  const std::string study = knob(trial, "study");
  const std::string inject = knob(trial, "inject");
  return (study.empty() || study == "full") && (inject.empty() || inject == "none");
}

std::optional<double> as_number(const std::string& text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) {
    return std::nullopt;
  }
  return value;
}

void rank(const ReportInput& input, Findings& findings) {
  std::set<std::string> seen;
  // The rungs of the ladder stand beside the search: they are ranked only where nothing was searched.
  for (const bool labelled : {false, true}) {
    for (const ReportTrial& trial : input.trials) {
      if (trial.label.empty() == labelled || trial.serial || !trial.ok() || !comparable(trial)) {
        continue;
      }
      if (seen.insert(trial.config).second) {
        findings.ranked.push_back(&trial);
      }
    }
    if (!findings.ranked.empty()) {
      break;
    }
  }
  std::stable_sort(findings.ranked.begin(), findings.ranked.end(),
                   [](const ReportTrial* a, const ReportTrial* b) {
                     return std::pair(!a->turns, a->wall_us()) < std::pair(!b->turns, b->wall_us());
                   });
  findings.finalists = static_cast<std::size_t>(
      std::count_if(findings.ranked.begin(), findings.ranked.end(),
                    [](const ReportTrial* trial) { return trial->turns.has_value(); }));
  for (const ReportTrial& trial : input.trials) {
    if (!trial.ok()) {
      findings.failed.push_back(&trial);
    } else if (trial.serial && comparable(trial) && findings.serial == nullptr) {
      findings.serial = &trial;
    }
  }
}

// By how much the medians of two trials may differ and still tie.
double tolerance(const ReportInput& input, const ReportTrial& best, const ReportTrial& trial) {
  return input.provenance == timeline::Provenance::simulated ? kModelResolution * best.median_us
                                                             : best.half_ci_us + trial.half_ci_us;
}

void find_ties(const ReportInput& input, Findings& findings) {
  const bool simulated = input.provenance == timeline::Provenance::simulated;
  findings.tie_rule =
      simulated ? fmt::format("within {} of the best, closer than any model is exact",
                              percent(kModelResolution))
      : findings.finalists > 0
          ? "of finalists, the 95% bootstrap interval of the ratio to the best holds "
            "1; of others, the 95% intervals of the search's medians overlap"
          : "the 95% intervals of the medians overlap";
  const ReportTrial* best = findings.best();
  for (const ReportTrial* trial : findings.ranked) {
    const bool tie = trial == best || (trial->turns ? trial->turns->ties
                                                    : trial->median_us - best->median_us <=
                                                          tolerance(input, *best, *trial));
    findings.ties.push_back(tie);
    findings.tied += tie ? 1 : 0;
  }
}

void look_at_rungs(const ReportInput& input, Findings& findings) {
  const ReportTrial* best = findings.best();
  if (best == nullptr) {
    return;
  }
  std::vector<const ReportTrial*> others;
  for (const ReportTrial& trial : input.trials) {
    if (trial.label.empty() || trial.serial || !trial.ok() || !comparable(trial)) {
      continue;
    }
    if (trial.config == best->config) {
      findings.best_rung = &trial;
    } else if (std::none_of(findings.ranked.begin(), findings.ranked.end(),
                            [&](const ReportTrial* one) { return one->config == trial.config; })) {
      others.push_back(&trial);
    }
  }
  const ReportTrial& held = findings.best_rung != nullptr ? *findings.best_rung : *best;
  for (const ReportTrial* rung : others) {
    const double least = findings.faster_rung == nullptr
                             ? held.wall_us() - tolerance(input, held, *rung)
                             : findings.faster_rung->median_us;
    if (rung->median_us < least) {
      findings.faster_rung = rung;
    }
  }
}

double explained_by(const std::vector<const ReportTrial*>& trials, const std::string& axis) {
  double sum = 0;
  std::map<std::string, std::pair<double, int>> groups;
  for (const ReportTrial* trial : trials) {
    sum += trial->median_us;
    auto& [group_sum, n] = groups[knob(*trial, axis)];
    group_sum += trial->median_us;
    ++n;
  }
  const double mean = sum / static_cast<double>(trials.size());
  double total = 0;
  for (const ReportTrial* trial : trials) {
    total += (trial->median_us - mean) * (trial->median_us - mean);
  }
  double between = 0;
  for (const auto& [value, group] : groups) {
    const double deviation = group.first / group.second - mean;
    between += group.second * deviation * deviation;
  }
  return total > 0 ? between / total : 0;
}

}  // namespace

double Findings::to_best(const ReportTrial& trial) const {
  return trial.wall_us(*best()) / best()->wall_us(trial);
}

double Findings::to_serial() const {
  const bool in_ladder = best_rung != nullptr && !serial->label.empty();
  return (in_ladder ? best_rung->median_us : best()->wall_us()) / serial->median_us;
}

bool is_single_run(const ReportInput& input) {
  return input.axes.empty() && input.trials.size() == 1 && input.trials.front().label.empty();
}

std::vector<const ReportTrial*> swept(const ReportInput& input) {
  std::vector<const ReportTrial*> trials;
  for (const ReportTrial& trial : input.trials) {
    if (trial.label.empty() && trial.ok() && !trial.serial && comparable(trial)) {
      trials.push_back(&trial);
    }
  }
  return trials;
}

std::vector<std::string> values_of(const std::vector<const ReportTrial*>& trials,
                                   const std::string& axis) {
  std::vector<std::string> values;
  for (const ReportTrial* trial : trials) {
    const std::string value = knob(*trial, axis);
    if (std::find(values.begin(), values.end(), value) == values.end()) {
      values.push_back(value);
    }
  }
  const bool numbers = std::all_of(values.begin(), values.end(),
                                   [](const std::string& v) { return as_number(v).has_value(); });
  if (numbers) {
    std::sort(values.begin(), values.end(), [](const std::string& a, const std::string& b) {
      return *as_number(a) < *as_number(b);
    });
  }
  return values;
}

Findings find(const ReportInput& input) {
  Findings findings;
  findings.word = std::string(timeline::name(input.provenance));
  rank(input, findings);
  find_ties(input, findings);
  look_at_rungs(input, findings);
  const std::vector<const ReportTrial*> trials = swept(input);
  for (const std::string& axis : input.axes) {
    AxisInfluence influence{axis, 0, values_of(trials, axis)};
    if (influence.values.size() > 1) {
      influence.explained = explained_by(trials, axis);
      findings.axes.push_back(std::move(influence));
    }
  }
  std::stable_sort(
      findings.axes.begin(), findings.axes.end(),
      [](const AxisInfluence& a, const AxisInfluence& b) { return a.explained > b.explained; });
  put_into_words(input, findings);
  return findings;
}

analysis::Step most_exposed(const analysis::CriticalPath& path) {
  const auto most = std::max_element(path.exposed_by_step.begin(), path.exposed_by_step.end());
  return *most > 0 ? static_cast<analysis::Step>(most - path.exposed_by_step.begin())
                   : analysis::Step::launch_gap;
}

}  // namespace fusescope::reports
