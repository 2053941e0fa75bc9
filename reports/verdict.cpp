// The findings in words: what is best, where its time goes, why, and what to try next. Every
// sentence is made from the numbers of the input; one whose numbers are missing is left out.

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>

#include "reports/findings.hpp"
#include "reports/format.hpp"

namespace fusescope::reports {

namespace {

using analysis::Step;

// Whether the sweep tried larger values of this knob than the best config's, so that more of it is known
// not to pay.
bool larger_was_tried(const Findings& findings, const std::string& knob) {
  for (const AxisInfluence& axis : findings.axes) {
    if (axis.axis == knob) {
      const auto found = findings.best()->knobs.find(knob);
      return found != findings.best()->knobs.end() && found->second != axis.values.back();
    }
  }
  return false;
}

std::string advice(Step step, const Findings& findings) {
  const auto is = [&](const char* knob, const char* value) {
    const auto found = findings.best()->knobs.find(knob);
    return found != findings.best()->knobs.end() && found->second == value;
  };
  switch (step) {
    case Step::dispatch_head:
      if (is("pull_order", "by_token")) {
        return "pull_order=by_slot: ranks then do not pull one rank's tokens after the other's";
      }
      return is("slot_order", "by_token") ? "slot_order=interleave_sources: the first row block's "
                                            "rows then come from all ranks at once "
                                            "instead of one rank's egress"
                                          : "fewer tokens_per_block: the first row block's last "
                                            "row then shares its block with fewer others";
    case Step::dispatch_order:
      return is("pull_order", "by_token")
                 ? "pull_order=by_slot: rows then arrive in the order of the tiles"
                 : "another slot_order: it changes which rank is asked first";
    case Step::dispatch_bandwidth:
      if (is("dispatch_comm_sms", "0") && !is("dispatch_head", "100")) {
        return "a larger dispatch_head: behind the head each block fetches one token at a time";
      }
      return larger_was_tried(findings, "dispatch_comm_sms")
                 ? "more dispatch_comm_sms cost the GEMM more than they won here, so another "
                   "slot_order, which "
                   "spreads the pulls over the ranks"
                 : "more dispatch_comm_sms or tokens_per_block; if neither moves the wall, the "
                   "link is the limit";
    case Step::combine_wait:
    case Step::combine_work:
      return is("job_order", "by_token")
                 ? "job_order=by_ready: jobs are then claimed as they become ready"
                 : "another combine_comm_sms: jobs and tiles compete for SMs";
    case Step::push_drain:
      if (is("all_hands", "false") && is("combine", "dispenser")) {
        return "all_hands=true: the compute blocks then help to drain the jobs";
      }
      return larger_was_tried(findings, "combine_comm_sms")
                 ? "more combine_comm_sms cost the GEMM more than they won here, and all SMs drain "
                   "already, so what "
                   "is left is the pushes' own speed: the link"
                 : "more combine_comm_sms, so that fewer jobs are left after the last tile";
    case Step::watermark:
    case Step::final_reduce:
      return "watermark_chunks above 1: the final reduce then starts on the parts that are "
             "complete";
    default:
      return "";
  }
}

// A ratio of walls in words that leave no doubt about what the percentage is of.
std::string less_or_more_time(double ratio) {
  return ratio <= 1 ? percent(1 - ratio) + " less time" : percent(ratio - 1) + " more time";
}

// The report of a single run: there is nothing to rank.
void say_only(const ReportInput& input, Findings& findings) {
  const ReportTrial& only = input.trials.front();
  findings.headline =
      fmt::format("{} takes {} µs ({})", only.serial ? "The serial layer" : "The run",
                  us(only.median_us), findings.word);
  findings.verdict.push_back(fmt::format("One config, {}: {} µs ({}).", only.config,
                                         us(only.median_us),
                                         input.source.empty() ? findings.word : input.source));
}

void say_best(const ReportInput& input, Findings& findings) {
  const ReportTrial* best = findings.best();
  if (is_single_run(input) && input.trials.front().ok()) {
    say_only(input, findings);
    return;
  }
  if (best == nullptr) {
    findings.headline =
        input.trials.empty() ? "No config was run" : "No fused config ran to its end";
    return;
  }
  const std::string finalists = findings.finalists > 0
                                    ? fmt::format("{} finalists timed in turns, of ",
                                                  count(static_cast<long long>(findings.finalists)))
                                    : "";
  std::string sentence =
      fmt::format("The best config, the fastest of {}{} fused {} that {}, takes {} µs ({}): {}.",
                  finalists, count(static_cast<long long>(findings.ranked.size())),
                  findings.ranked.size() == 1 ? "config" : "configs",
                  best->label.empty() ? "the search ran" : "the ladder ran", us(best->wall_us()),
                  input.source.empty() ? findings.word : input.source, best->config);
  if (findings.serial != nullptr) {
    const double ratio = findings.to_serial();
    findings.headline = fmt::format("The best config takes {} than the serial layer ({})",
                                    less_or_more_time(ratio), findings.word);
    const bool apart =
        findings.best_rung != nullptr && findings.best_rung->median_us != best->wall_us();
    sentence += fmt::format(" The serial layer takes {} µs {}, so that is {}x its speed.",
                            us(findings.serial->median_us),
                            apart ? fmt::format("in the ladder, and this config there {} µs",
                                                us(findings.best_rung->median_us))
                                  : "on the same terms",
                            number(1 / ratio));
  } else {
    findings.headline =
        fmt::format("The best config takes {} µs ({})", us(best->wall_us()), findings.word);
    sentence += " The serial layer was not run, so there is no baseline.";
  }
  findings.verdict.push_back(sentence);
  if (findings.faster_rung != nullptr) {
    const ReportTrial& rung = *findings.faster_rung;
    const ReportTrial& held = findings.best_rung != nullptr ? *findings.best_rung : *best;
    findings.verdict.push_back(fmt::format(
        "The search missed a faster config: the ladder's rung \"{}\" takes {} µs, {} than the best "
        "that was searched: {}.",
        rung.label, us(rung.median_us), less_or_more_time(rung.median_us / held.wall_us()),
        rung.config));
  }
  if (findings.tied > 1) {
    findings.verdict.push_back(
        fmt::format("{} more {} with it ({}).", count(static_cast<long long>(findings.tied) - 1),
                    findings.tied == 2 ? "config ties" : "configs tie", findings.tie_rule));
  }
}

// Whose rows the gates waited for most.
std::string blame_sentence(const std::vector<analysis::WaitTotal>& sources) {
  std::int64_t all = 0;
  for (const analysis::WaitTotal& source : sources) {
    all += source.wait_ns;
  }
  if (sources.size() < 2 || all <= 0 || sources.front().id < 0) {
    return "";
  }
  return fmt::format(
      " Of all gate waits, {} ended with a row of rank {}.",
      percent(static_cast<double>(sources.front().wait_ns) / static_cast<double>(all)),
      sources.front().id);
}

void say_path(const ReportInput& input, Findings& findings) {
  if (!input.chosen) {
    return;
  }
  const ChosenRun& run = *input.chosen;
  if (!run.attribution.refusal.empty()) {
    findings.verdict.push_back("The chosen run is not attributed: " + run.attribution.refusal);
    return;
  }
  const auto wall = static_cast<double>(run.timeline.wall_ns());
  if (wall <= 0) {
    return;
  }
  findings.verdict.push_back(fmt::format(
      "{}{}{}", is_single_run(input) ? "" : "The run explained below is " + run.name + ". ",
      with_micro_sign(run.attribution.headline),
      blame_sentence(run.attribution.waits.source_ranks)));
  for (const analysis::LinkLoad* load : {&run.attribution.pulls, &run.attribution.pushes}) {
    if (load->bottleneck >= 0) {
      findings.verdict.push_back(with_micro_sign(load->statement) + ".");
    }
  }

  double fixed = 0;
  for (const Step each :
       {Step::ids_exchange, Step::schedule_build, Step::barrier, Step::copy_in, Step::launch_gap}) {
    fixed += static_cast<double>(run.attribution.path.by_step[static_cast<std::size_t>(each)]);
  }
  if (fixed > 0) {
    findings.verdict.push_back(
        fmt::format("{} µs ({}) pass before, between and after the kernels: ids exchange, schedule "
                    "build, barriers, "
                    "copy-in and launch gaps, which overlap inside the kernels cannot hide.",
                    us(fixed / 1000), percent(fixed / wall)));
  }
}

void say_axes(const ReportInput& input, Findings& findings) {
  if (!findings.axes.empty() && findings.axes.front().explained > 0) {
    const AxisInfluence& first = findings.axes.front();
    std::string sentence =
        fmt::format("{} decides most: alone it explains {} of the variance of the walls",
                    first.axis, percent(first.explained));
    if (findings.axes.size() > 1) {
      const AxisInfluence& second = findings.axes[1];
      sentence += fmt::format("; {} alone {}", second.axis, percent(second.explained));
      if (first.explained + second.explained > 1) {
        sentence += " (the two overlap: not every combination of their values was run)";
      }
    }
    findings.verdict.push_back(sentence + ".");
  }
  if (!findings.failed.empty()) {
    findings.verdict.push_back(
        fmt::format("{} of {} configs could not run or failed; each is listed with its reason.",
                    findings.failed.size(), input.trials.size()));
  }
}

std::optional<double> number_in(const std::string& text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool whole = error == std::errc{} && end == text.data() + text.size();
  return whole ? std::optional(value) : std::nullopt;
}

void say_edges(const Findings& findings, std::vector<std::string>& next) {
  for (const AxisInfluence& axis : findings.axes) {
    const auto found = findings.best()->knobs.find(axis.axis);
    if (found == findings.best()->knobs.end() || axis.explained < 0.01) {
      continue;
    }
    const std::optional<double> value = number_in(found->second);
    const bool low = found->second == axis.values.front();
    // No knob goes below 0, and no percentage beyond 100.
    const bool last = axis.axis == "dispatch_head" && value == 100;
    if (value && (low ? *value > 0 : !last && found->second == axis.values.back())) {
      next.push_back(fmt::format("{}={} is the {} value swept: extend the axis {}.", axis.axis,
                                 found->second, low ? "smallest" : "largest", low ? "down" : "up"));
    }
  }
}

void say_next(const ReportInput& input, Findings& findings) {
  const ReportTrial* best = findings.best();
  if (best == nullptr) {
    return;
  }
  if (input.chosen) {
    const std::string hint = advice(most_exposed(input.chosen->attribution.path), findings);
    if (!hint.empty()) {
      findings.next.push_back(
          fmt::format("Against the {}: {}.",
                      analysis::name(most_exposed(input.chosen->attribution.path)), hint));
    }
  }
  if (findings.faster_rung != nullptr) {
    findings.next.push_back(fmt::format(
        "Search around the rung \"{}\" too: give the axes the values of its config ({}).",
        findings.faster_rung->label, findings.faster_rung->config));
  }
  say_edges(findings, findings.next);
  for (const AxisInfluence& axis : findings.axes) {
    if (axis.explained < 0.01) {
      findings.next.push_back(
          fmt::format("{} explains {} of the variance: fix it and spend the trials on other knobs.",
                      axis.axis, percent(axis.explained)));
    }
  }
  if (input.provenance == timeline::Provenance::simulated) {
    findings.next.push_back(
        "These times are simulated: re-time the leading configs on the machine itself before "
        "relying on "
        "differences of a few percent.");
  }
}

}  // namespace

void put_into_words(const ReportInput& input, Findings& findings) {
  say_best(input, findings);
  say_path(input, findings);
  say_axes(input, findings);
  say_next(input, findings);
}

}  // namespace fusescope::reports
