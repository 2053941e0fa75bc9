#include "sweep/summary.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <utility>

#include "sweep/statistics.hpp"

namespace fusescope::sweep {
namespace {

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
    text += fmt::format("{}{}={}", text.empty() ? "" : " ", knob, knob_text(config, knob));
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
  const Trial& first = ranking.front().trial;
  std::size_t ties = 0;
  for (const Ranked& each : ranking) {
    ties += each.ties_with_best ? 1 : 0;
  }
  for (std::size_t i = 0; i < std::min(options.top, ranking.size()); ++i) {
    const Trial& trial = ranking[i].trial;
    const bool tie = ranking[i].ties_with_best && ties > 1;
    text += fmt::format("{:>5}  {:>16}  {:>9}  {:>12}  {}\n",
                        tie ? std::string("tie") : fmt::format("{}", i + 1), shown_wall(trial),
                        fmt::format("{:+.2f}%", slower_than(trial, first) * 100),
                        trial.timeline_wall_us > 0 ? fmt::format("{:.1f}", trial.exposed_us) : "-",
                        shown_config(trial.config, options));
  }
  if (ranking.size() > options.top) {
    text += fmt::format("      ... and {} more\n", ranking.size() - options.top);
  }
  if (ties > 1) {
    const char* const why =
        first.kind == TrialKind::finalist
            ? "of finalists, the 95% bootstrap interval of the ratio to the best, timed in turns, "
              "holds 1; of others, the 95% intervals of the search's medians overlap"
        : first.half_ci_us > 0 ? "the 95% intervals of their medians overlap"
                               : "their simulated times differ by less than 0.1%";
    text += fmt::format("{} configs tie for the best: {}.\n", ties, why);
  }
  if (const auto rival = std::find_if(ranking.begin(), ranking.end(),
                                      [](const Ranked& each) { return !each.ties_with_best; });
      rival != ranking.end()) {
    text += fmt::format("The best that does not tie is {:.2f}% slower.\n",
                        slower_than(rival->trial, first) * 100);
  }
  return text;
}

std::string ladder_text(const std::vector<Trial>& trials) {
  std::vector<const Trial*> rungs;
  for (const Trial& trial : trials) {
    if (trial.kind == TrialKind::rung) {
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
    if (trial.verdict != Verdict::ok && trial.kind != TrialKind::rung) {
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

// How the SM clock went, where it is known.
std::string clock_text(const std::vector<Trial>& trials) {
  std::vector<double> clocks;
  int apart = 0;
  int kept = 0;
  double lowest = std::numeric_limits<double>::infinity();  // of the trials' thresholds
  double highest = 0;
  for (const Trial& trial : trials) {
    clocks.insert(clocks.end(), trial.sm_clock_mhz.begin(), trial.sm_clock_mhz.end());
    apart += samples_set_apart(trial);
    kept += throttled_samples(trial) - samples_set_apart(trial);
    if (trial.throttle_mhz > 0) {
      lowest = std::min(lowest, trial.throttle_mhz);
      highest = std::max(highest, trial.throttle_mhz);
    }
  }
  if (clocks.empty()) {
    return "";
  }
  const std::size_t samples = clocks.size();
  const std::string most =
      kept > 0 ? fmt::format("; {} more did but count, as most of their trial's samples did", kept)
               : "";
  // Each trial's threshold follows the clocks until then.
  std::string below = fmt::format("{:.0f} MHz", highest);
  if (highest > 0 && std::round(lowest) < std::round(highest)) {
    below = fmt::format("their trial's threshold, {:.0f} to {:.0f} MHz,", lowest, highest);
  }
  return fmt::format(
      "SM clock: median {:.0f} MHz; {} of {} samples ran below {} and are set apart{}.\n",
      median(std::move(clocks)), apart, samples, below, most);
}

// How the base config went, where it was measured.
std::string drift_text(const std::vector<Trial>& trials) {
  const Trial* first = nullptr;
  double least = 0;
  double most = 0;
  std::size_t measured = 0;
  std::size_t normalised = 0;
  for (const Trial& trial : trials) {
    normalised += trial.drift != 1 ? 1 : 0;
    if (trial.kind == TrialKind::base && trial.verdict == Verdict::ok) {
      first = first == nullptr ? &trial : first;
      const double change = trial.raw_median_us / first->raw_median_us - 1;
      least = std::min(least, change);
      most = std::max(most, change);
      ++measured;
    }
  }
  if (measured == 0) {
    return "";
  }
  return fmt::format(
      "Drift: the base config was measured {} times and moved by {:+.2f}% to {:+.2f}%; {} trials "
      "are "
      "normalised by it.\n",
      measured, least * 100, most * 100, normalised);
}

}  // namespace

std::string summary_text(const std::vector<Trial>& trials, const SummaryOptions& options) {
  const std::vector<Trial> counted = latest(trials);
  return ranking_text(rank(counted), options) + ladder_text(counted) +
         failures_text(counted, options);
}

std::string timing_text(const std::vector<Trial>& trials, const Outcome& outcome) {
  const bool simulated = std::any_of(trials.begin(), trials.end(), [](const Trial& trial) {
    return trial.source.starts_with("simulated");
  });
  const double beside = std::max(0.0, outcome.seconds - outcome.engine_seconds);
  std::string text = fmt::format("Time: {:.1f} s", outcome.seconds);
  if (!simulated && outcome.seconds > 0) {
    text += fmt::format(
        ", of which {:.1f} s in the engine (samples {:.1f} s, the remainder set-up, output checks"
        "{}) and {:.2f} s ({:.1f}%) beside it",
        outcome.engine_seconds, outcome.sample_seconds,
        outcome.rest_ms > 0
            ? fmt::format(", warm-up and {} ms of rest before each iteration", outcome.rest_ms)
            : " and warm-up",
        beside, beside / outcome.seconds * 100);
    if (outcome.startup_seconds > 0) {
      text += fmt::format(", {:.2f} s of that for the worker to start", outcome.startup_seconds);
    }
  }
  return text + ".\n" + clock_text(trials) + drift_text(trials);
}

}  // namespace fusescope::sweep
