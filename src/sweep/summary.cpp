#include "sweep/summary.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "sweep/trial_log.hpp"

namespace fusescope::sweep {
namespace {

bool is_tie(const Trial& a, const Trial& best) {
  if (a.half_ci_us == 0 && best.half_ci_us == 0) {
    return a.median_us <= best.median_us * (1 + kModelNoise);
  }
  return a.median_us - a.half_ci_us <= best.median_us + best.half_ci_us;
}

// "1402.3 +-1.1", and no interval where there is none.
std::string shown_wall(const Trial& trial) {
  return trial.half_ci_us > 0 ? fmt::format("{:.1f} +-{:.1f}", trial.median_us, trial.half_ci_us)
                              : fmt::format("{:.1f}", trial.median_us);
}

std::string shown_config(const Config& config, const SummaryOptions& options) {
  if (options.knobs.empty()) {
    return describe(config);
  }
  std::string text;
  for (const std::string& knob : options.knobs) {
    text += fmt::format("{}{}={}", text.empty() ? "" : " ", knob,
                        to_string(find_knob(knob)->get(config)));
  }
  return text;
}

std::string without_trailing_blanks(std::string line) {
  line.erase(line.find_last_not_of(' ') + 1);
  return line + "\n";
}

std::string ranking_text(const std::vector<Ranked>& ranking, const SummaryOptions& options) {
  if (ranking.empty()) {
    return "No trial of the search ran.\n";
  }
  std::string text = fmt::format("{:>5}  {:>16}  {:>9}  {:>12}  {}\n", "place", "wall [us]",
                                 "vs best", "exposed [us]", "config");
  const double best = ranking.front().trial.median_us;
  std::size_t ties = 0;
  for (const Ranked& each : ranking) {
    ties += each.ties_with_best ? 1 : 0;
  }
  for (std::size_t i = 0; i < std::min(options.top, ranking.size()); ++i) {
    const Trial& trial = ranking[i].trial;
    const bool tie = ranking[i].ties_with_best && ties > 1;
    text += fmt::format("{:>5}  {:>16}  {:>9}  {:>12}  {}\n",
                        tie ? std::string("tie") : fmt::format("{}", i + 1), shown_wall(trial),
                        fmt::format("{:+.2f}%", (trial.median_us / best - 1) * 100),
                        trial.timeline_wall_us > 0 ? fmt::format("{:.1f}", trial.exposed_us) : "-",
                        shown_config(trial.config, options));
  }
  if (ranking.size() > options.top) {
    text += fmt::format("      ... and {} more\n", ranking.size() - options.top);
  }
  if (ties > 1) {
    text += fmt::format("{} configs tie for the best: {}.\n", ties,
                        ranking.front().trial.half_ci_us > 0
                            ? "the 95% intervals of their medians overlap"
                            : "their simulated times differ by less than 0.1%");
  }
  return text;
}

std::string ladder_text(const std::vector<Trial>& trials) {
  std::vector<const Trial*> rungs;
  for (const Trial& trial : trials) {
    if (!trial.label.empty()) {
      rungs.push_back(&trial);
    }
  }
  if (rungs.empty()) {
    return "";
  }
  std::sort(rungs.begin(), rungs.end(),
            [](const Trial* a, const Trial* b) { return a->id < b->id; });
  std::size_t width = 0;
  for (const Trial* rung : rungs) {
    width = std::max(width, rung->label.size());
  }
  const Trial& first = *rungs.front();
  std::string text = fmt::format("\n{:<{}}  {:>16}  {:>10}  {:>12}\n", "ladder", width, "wall [us]",
                                 "gain [us]", "vs " + first.label);
  const Trial* before = nullptr;
  for (const Trial* rung : rungs) {
    if (rung->verdict != Verdict::ok) {
      text +=
          fmt::format("{:<{}}  {}: {}\n", rung->label, width, name(rung->verdict), rung->reason);
      before = nullptr;
      continue;
    }
    const std::string gain =
        before == nullptr ? "" : fmt::format("{:+.1f}", before->median_us - rung->median_us);
    const std::string against_first =
        rung == &first || first.verdict != Verdict::ok
            ? ""
            : fmt::format("{:+.1f}%", (rung->median_us / first.median_us - 1) * 100);
    text += without_trailing_blanks(fmt::format("{:<{}}  {:>16}  {:>10}  {:>12}", rung->label,
                                                width, shown_wall(*rung), gain, against_first));
    before = rung;
  }
  return text;
}

// Failures with the same verdict and reason share a line.
std::string failures_text(const std::vector<Trial>& trials, const SummaryOptions& options) {
  std::map<std::pair<Verdict, std::string>, std::vector<const Trial*>> groups;
  for (const Trial& trial : trials) {
    if (trial.verdict != Verdict::ok && trial.label.empty()) {
      groups[{trial.verdict, trial.reason}].push_back(&trial);
    }
  }
  if (groups.empty()) {
    return "";
  }
  std::string text = "\nDid not run:\n";
  for (const auto& [key, members] : groups) {
    text += fmt::format("  {} x {}: {} (first: trial {}, {})\n", members.size(), name(key.first),
                        key.second, members.front()->id,
                        shown_config(members.front()->config, options));
  }
  return text;
}

std::string quoted(const std::string& cell) {
  if (cell.find_first_of(",\"\r\n") == std::string::npos) {
    return cell;
  }
  std::string text = "\"";
  for (const char character : cell) {
    text += character == '"' ? "\"\"" : std::string(1, character);
  }
  return text + "\"";
}

}  // namespace

bool is_better(const Trial& a, const Trial& b) {
  return std::pair(a.median_us, a.id) < std::pair(b.median_us, b.id);
}

std::optional<Trial> best_trial(const std::vector<Trial>& trials) {
  const Trial* best = nullptr;
  for (const Trial& trial : trials) {
    if (trial.verdict == Verdict::ok && trial.label.empty() &&
        (best == nullptr || is_better(trial, *best))) {
      best = &trial;
    }
  }
  return best == nullptr ? std::nullopt : std::optional(*best);
}

std::vector<Ranked> rank(const std::vector<Trial>& trials) {
  std::vector<Ranked> ranking;
  for (const Trial& trial : trials) {
    if (trial.verdict == Verdict::ok && trial.label.empty()) {
      ranking.push_back({trial, false});
    }
  }
  std::sort(ranking.begin(), ranking.end(),
            [](const Ranked& a, const Ranked& b) { return is_better(a.trial, b.trial); });
  for (Ranked& each : ranking) {
    each.ties_with_best = is_tie(each.trial, ranking.front().trial);
  }
  return ranking;
}

std::string summary_text(const std::vector<Trial>& trials, const SummaryOptions& options) {
  const std::vector<Trial> counted = latest(trials);
  return ranking_text(rank(counted), options) + ladder_text(counted) +
         failures_text(counted, options);
}

std::string to_csv(const std::vector<Trial>& trials) {
  std::set<std::string> steps;
  for (const Trial& trial : trials) {
    for (const auto& [step, time] : trial.steps_us) {
      steps.insert(step);
    }
  }
  std::string text = "id,label,verdict,median_us,half_ci_us,samples,exposed_us,timeline_wall_us";
  for (const Knob& knob : knobs()) {
    text += fmt::format(",{}", knob.name);
  }
  for (const std::string& step : steps) {
    text += fmt::format(",{}", quoted(step + " us"));
  }
  text += ",seconds,source,reason\r\n";
  for (const Trial& trial : trials) {
    text += fmt::format("{},{},{},{},{},{},{},{}", trial.id, quoted(trial.label),
                        name(trial.verdict), trial.median_us, trial.half_ci_us,
                        trial.wall_us.size(), trial.exposed_us, trial.timeline_wall_us);
    for (const Knob& knob : knobs()) {
      text += fmt::format(",{}", quoted(to_string(knob.get(trial.config))));
    }
    for (const std::string& step : steps) {
      const auto found = trial.steps_us.find(step);
      text += found == trial.steps_us.end() ? "," : fmt::format(",{}", found->second);
    }
    text += fmt::format(",{},{},{}\r\n", trial.seconds, quoted(trial.source), quoted(trial.reason));
  }
  return text;
}

}  // namespace fusescope::sweep
