#include "cli/report_input.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "base/error.hpp"
#include "base/version.hpp"
#include "cli/files.hpp"
#include "cli/profile_facts.hpp"
#include "cli/run_advice.hpp"
#include "cli/run_folder.hpp"
#include "cli/run_rungs.hpp"
#include "cli/sweep_folder.hpp"
#include "sweep/summary.hpp"
#include "timeline/writers.hpp"

namespace fusescope::cli {
namespace {

reports::ReportTrial report_trial(const sweep::Trial& trial, bool ties_with_best = false) {
  reports::ReportTrial row;
  row.id = trial.id;
  row.label = trial.label;
  row.config = describe(trial.config);
  for (const Knob& knob : knobs()) {
    row.knobs[std::string(knob.name)] = to_string(knob.get(trial.config));
  }
  row.verdict = sweep::name(trial.verdict);
  row.reason = trial.reason;
  row.serial = trial.config.form == LayerForm::serial;
  row.median_us = trial.median_us;
  row.half_ci_us = trial.half_ci_us;
  if (trial.kind == sweep::TrialKind::finalist) {
    row.turns = {trial.median_us, trial.half_ci_us, ties_with_best};
    row.median_us = trial.searched_us;
    row.half_ci_us = trial.searched_half_ci_us;
  }
  row.steps_us = trial.steps_us;
  row.timeline_wall_us = trial.timeline_wall_us;
  row.exposed_us = trial.exposed_us;
  return row;
}

bool ties_with_best(const std::vector<sweep::Ranked>& ranking, const sweep::Trial& trial) {
  return std::any_of(ranking.begin(), ranking.end(), [&](const sweep::Ranked& each) {
    return each.ties_with_best && each.trial.config == trial.config;
  });
}

std::string why_best(const std::vector<sweep::Ranked>& ranking) {
  const auto finalists = std::count_if(
      ranking.begin(), ranking.end(),
      [](const sweep::Ranked& each) { return each.trial.kind == sweep::TrialKind::finalist; });
  return fmt::format(
      "the fastest median of {}the {} configs that ran (trial {})",
      finalists > 0 ? fmt::format("the {} finalists timed in turns, of ", finalists) : "",
      ranking.size(), ranking.front().trial.id);
}

analysis::Ladder ladder_of(const std::vector<sweep::Trial>& trials) {
  std::vector<sweep::Trial> rungs;
  std::copy_if(trials.begin(), trials.end(), std::back_inserter(rungs),
               [](const sweep::Trial& trial) { return !trial.label.empty(); });
  std::sort(rungs.begin(), rungs.end(),
            [](const sweep::Trial& a, const sweep::Trial& b) { return a.id < b.id; });
  std::vector<analysis::LadderRung> configs;
  std::vector<analysis::LadderWall> walls;
  for (const sweep::Trial& rung : rungs) {
    configs.push_back({rung.label, rung.config});
    walls.push_back({rung.verdict == sweep::Verdict::ok, rung.median_us, rung.half_ci_us});
  }
  return analysis::make_ladder(configs, walls);
}

void add_chosen(reports::ReportInput& input, const std::string& file, const std::string& name,
                const std::string& why) {
  if (!std::filesystem::is_regular_file(file)) {
    input.notes.push_back("No timeline was recorded, so no run is explained in depth.");
    return;
  }
  reports::ChosenRun chosen;
  chosen.name = name;
  chosen.why = why;
  chosen.timeline = load_checked_timeline(file);
  chosen.attribution = analysis::attribute(chosen.timeline);
  chosen.rungs = read_rungs(file);
  if (chosen.rungs) {
    chosen.attribution.exposure =
        analysis::state_exposure(chosen.timeline, chosen.attribution, &*chosen.rungs);
  }
  input.provenance = chosen.timeline.meta.provenance;
  input.chosen = std::move(chosen);
}

// The profile may have changed or gone since the sweep ran: then its numbers are left out, and it is said.
void add_profile(reports::ReportInput& input, const sweep::SweepConfig& sweep,
                 const sweep::LogHeader& header, const std::optional<sweep::Trial>& best) {
  try {
    if (simulator_identity(sweep.profile) != header.device) {
      input.notes.push_back(
          "The device profile has changed since this sweep ran; its numbers are not shown.");
      return;
    }
    const ProfileFacts facts = profile_facts(sweep.profile);
    input.profile = facts.name;
    input.profile_about = facts.about;
    input.profile_numbers = facts.numbers;
    if (best) {
      input.published = published_figures(sweep, best->config);
    }
  } catch (const InputError& error) {
    input.notes.push_back(
        fmt::format("The device profile could not be read again, so its numbers are not shown: {}.",
                    error.what()));
  }
}

void add_present_files(reports::ReportInput& input, const std::string& folder) {
  const std::string trace =
      std::string(kBestFolder) + std::string(timeline::find_format("perfetto").extension);
  const std::string best_timeline = joined(kBestFolder, kTimelineFile);
  for (const auto& [what, file] : {std::pair<std::string, std::string>{"trial log", kTrialsFile},
                                   {"trials as CSV", kCsvFile},
                                   {"sweep config", kSweepFile},
                                   {"best config's timeline", best_timeline},
                                   {"best config's timeline for Perfetto", trace},
                                   {"run", kRunFile},
                                   {"timeline", kTimelineFile}}) {
    if (std::filesystem::is_regular_file(joined(folder, file))) {
      input.files[what] = file;
    }
  }
}

}  // namespace

reports::ReportInput sweep_report_input(const std::string& folder) {
  const SweepRecord record = read_sweep_folder(folder);
  const sweep::LogHeader& header = record.log.header;
  const std::vector<sweep::Trial> trials = sweep::latest(record.log.trials);
  const std::vector<sweep::Ranked> ranking = sweep::rank(trials);
  const std::optional<sweep::Trial> best = sweep::best_trial(trials);

  reports::ReportInput input;
  input.name = record.config.name;
  input.why = record.config.why;
  input.problem = header.problem;
  input.engine = header.engine;
  input.provenance =
      header.engine == "sim" ? timeline::Provenance::simulated : timeline::Provenance::measured;
  if (header.engine != "sim") {
    input.sampling = engine::describe_rest(rest_ms(header));
  }
  input.command = header.command;
  input.date = header.started;
  input.fusescope = header.fusescope;
  input.rendered_by = version_line();
  for (const sweep::Axis& axis : record.config.axes) {
    input.axes.push_back(axis.knob);
  }
  for (const sweep::Trial& trial : trials) {
    input.trials.push_back(report_trial(trial, ties_with_best(ranking, trial)));
    if (input.source.empty()) {
      input.source = trial.source;
    }
  }
  input.ladder = ladder_of(trials);
  if (best) {
    add_chosen(input, joined(joined(folder, kBestFolder), kTimelineFile), "the best config",
               why_best(ranking));
  }
  if (header.engine == "sim") {
    add_profile(input, record.config, header, best);
  }
  add_present_files(input, folder);
  return input;
}

reports::ReportInput run_report_input(const std::string& folder) {
  const RunRecord record = read_run(folder);
  reports::ReportInput input;
  input.name = "run";
  input.problem = record.problem;
  input.engine = record.engine;
  input.provenance = record.provenance;
  input.source = record.source;
  input.sampling = record.sampling();
  input.command = record.command;
  input.date = record.date;
  input.fusescope = record.fusescope;
  input.rendered_by = version_line();
  add_chosen(input, joined(folder, kTimelineFile), "the run", "");
  sweep::Trial trial;
  trial.config = record.config;
  trial.median_us = record.median_us;
  trial.half_ci_us = record.half_ci_us;
  if (input.chosen) {
    const analysis::Attribution& attribution = input.chosen->attribution;
    trial.steps_us = analysis::steps_us(attribution.path);
    trial.timeline_wall_us = static_cast<double>(attribution.wall_ns) / 1e3;
    trial.exposed_us = static_cast<double>(attribution.exposed_ns) / 1e3;
  }
  input.trials.push_back(report_trial(trial));
  add_present_files(input, folder);
  return input;
}

void add_advice(reports::ReportInput& input, const std::string& folder, const std::string& sweep) {
  if (input.chosen && input.chosen->attribution.refusal.empty()) {
    input.advice = advise_run({timeline_file(folder), sweep, ""}, input.chosen->timeline,
                              input.chosen->attribution);
  }
}

}  // namespace fusescope::cli
