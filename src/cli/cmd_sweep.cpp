// fusescope sweep: searches the configs that a sweep file spans, then runs the ladder, keeps the winner's
// run, prints a table and, if asked, writes the report.

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>

#include "cli/command.hpp"
#include "cli/common_options.hpp"
#include "cli/files.hpp"
#include "cli/sweep_folder.hpp"
#include "cli/sweep_json.hpp"
#include "cli/sweep_reports.hpp"
#include "cli/sweep_session.hpp"
#include "sweep/knob_json.hpp"
#include "sweep/results.hpp"
#include "sweep/summary.hpp"

namespace fusescope::cli {
namespace {

struct SweepOptions {
  std::string sweep;
  std::string out;
  std::string shape;
  std::vector<std::string> assignments;
  std::string engine;
  std::string profile;
  std::string gemm;
  std::optional<int> rest_ms;
  long long trials = 0;
  int jobs = 0;
  std::size_t top = 10;
  bool resume = false;
  std::optional<bool> isolate;
  std::vector<std::string> faults;
  std::string shard;
  bool report = false;
  bool json = false;
};

constexpr const char* kFooter =
    "\nThe folder then holds trials.jsonl (one line per trial, failures included), trials.csv,\n"
    "sweep.json, best/ (the winner's run and timeline) and, with --report, report.html, report.md "
    "and\n"
    "best.pftrace for ui.perfetto.dev. A sweep that was interrupted goes on where it was: run the "
    "same\n"
    "command again.\n"
    "\nExamples:\n"
    "  fusescope sweep quickstart --report\n"
    "  fusescope sweep my-sweep.json --out out/mine --trials 100\n"
    "  fusescope sweep quickstart --profile h200-nvlink --out out/quickstart-h200\n"
    "  fusescope sweep scaling --shape seed-tp2 --set link_gbps=50 --out out/tp2-50";

// A knob of the base config; the axes go on top of it.
void set_base(Json& document, const std::string& assignment) {
  Config config;
  set_knob_text(config, assignment, "--set");
  const std::string knob = assignment.substr(0, assignment.find('='));
  if (document.contains("axes") && document["axes"].is_object() &&
      document["axes"].contains(knob)) {
    throw InputError({"--set", assignment, knob + " is an axis of this sweep, which sets it",
                      "a knob that no axis has"});
  }
  Json& base = document["base"];
  if (base.is_null() || base.is_object()) {  // else the sweep's reader says what is wrong with it
    base[knob] = sweep::to_json(find_knob(knob)->get(config));
  }
}

sweep::SweepConfig load_config(const SweepOptions& options) {
  const std::string file = find_sweep(options.sweep);
  Json document = read_json_file(file);
  // What the command line overrides is part of the sweep that is run, and of its record.
  if (document.is_object()) {
    if (!options.engine.empty()) {
      document["engine"] = options.engine;
    }
    if (!options.profile.empty()) {
      document["profile"] = options.profile;
    }
    if (!options.shape.empty()) {
      document["shape"] = options.shape;
    }
    for (const std::string& assignment : options.assignments) {
      if (!options.gemm.empty() && assignment.starts_with("gemm=")) {
        throw InputError({"--set", assignment, "--gemm sets the same knob", "one of the two"});
      }
      set_base(document, assignment);
    }
    if (!options.gemm.empty()) {
      document["base"]["gemm"] = options.gemm;
    }
    set_rest(document, options.rest_ms);
  }
  sweep::SweepConfig config = sweep::parse_sweep_config(document, file);
  if (options.trials > 0) {
    config.search.trials = options.trials;
    config.document["search"]["strategy"] = sweep::name(config.search.kind);
    config.document["search"]["budget"]["trials"] = options.trials;
  }
  if (!options.shard.empty()) {
    config.shard = sweep::parse_shard(options.shard, "--shard");
  }
  return config;
}

// A mistake in what the command line put into the sweep is not one of the sweep's file.
InputError at_its_option(const InputError& error, const SweepOptions& options) {
  InputError::Parts parts = error.parts();
  if (!options.shape.empty() && parts.place == "/shape") {
    parts.file = "--shape";
    parts.place.clear();
  }
  for (const std::string& assignment : options.assignments) {
    if (parts.place == "/base/" + assignment.substr(0, assignment.find('='))) {
      parts.file = "--set";
      parts.place = assignment;
    }
  }
  return InputError(parts);
}

std::string ending_text(const sweep::Search& search, const sweep::Outcome& outcome) {
  const long long trials = outcome.found + outcome.ran;
  switch (outcome.ending) {
    case sweep::Ending::seconds_spent:
      return fmt::format("The budget of {} s ended the search after {} trials.\n", search.seconds,
                         trials);
    case sweep::Ending::trials_spent:
      return fmt::format("The budget of {} trials ended the search.\n", search.trials);
    case sweep::Ending::no_progress:
      return fmt::format("The search ended after {} trials: the last {} brought less than {}%.\n",
                         trials, search.improvement.trials, search.improvement.at_least * 100);
    case sweep::Ending::complete:
    case sweep::Ending::stopped:
      break;
  }
  return "";
}

void print(const SweepOptions& options, const SweepSession& session) {
  const std::vector<sweep::Trial>& trials = session.trials();
  const sweep::Outcome& outcome = session.outcome();
  if (options.json) {
    std::printf("%s\n", sweep_json(session.folder(), trials, outcome).dump(2).c_str());
    return;
  }
  const std::optional<sweep::Trial> best = sweep::best_trial(trials);
  sweep::SummaryOptions summary{options.top, {}};
  for (const sweep::Axis& axis : session.config().axes) {
    summary.knobs.push_back(axis.knob);
  }
  const std::string sampling = session.sampling();
  std::printf("\n%s%s%s%s\n%s%s", best ? best->source.c_str() : "",
              best && !sampling.empty() ? (", " + sampling).c_str() : "", best ? "\n\n" : "",
              sweep::summary_text(trials, summary).c_str(),
              ending_text(session.config().search, outcome).c_str(),
              sweep::timing_text(trials, outcome).c_str());
  std::printf("\nTrials: %s, %s\n", session.log_path().c_str(),
              joined(session.folder(), kCsvFile).c_str());
}

int run_sweep(const SweepOptions& options, const Context& context) {
  sweep::SweepConfig config = load_config(options);
  SessionOptions session_options;
  session_options.out = options.out.empty() ? joined("out", config.name) : options.out;
  session_options.jobs = options.jobs;
  session_options.resume = options.resume;
  session_options.isolate = options.isolate;
  session_options.faults = options.faults;
  SweepSession session(std::move(config), std::move(session_options), context);
  session.run();
  print(options, session);
  if (options.report && !session.stopped()) {
    write_sweep_reports(session.folder(), options.json ? stderr : stdout);
  }
  if (session.stopped()) {
    std::fprintf(stderr, "Interrupted. The log is whole; the same command goes on from here.\n");
    return kInterrupted;
  }
  if (!sweep::best_trial(session.trials())) {
    std::fprintf(stderr, "fusescope: %s: no trial ran\n", session.folder().c_str());
    return kCheckFailed;
  }
  return session.kept() ? kFine : kCheckFailed;
}

int run(const SweepOptions& options, const Context& context) {
  try {
    return run_sweep(options, context);
  } catch (const InputError& error) {
    throw at_its_option(error, options);
  }
}

}  // namespace

void add_sweep(CLI::App& app, Context& context) {
  const auto options = std::make_shared<SweepOptions>();
  CLI::App* command = app.add_subcommand("sweep", "Search for the fastest config of a sweep file");
  command->add_option("sweep", options->sweep, "A sweep's JSON file, or its name (\"list sweeps\")")
      ->type_name("FILE|NAME")
      ->required();
  command->add_option("--out", options->out, "Folder for the results (default: out/NAME)")
      ->type_name("DIR");
  command->add_flag("--resume", options->resume,
                    "Insist on an earlier log to go on from (one that is there is used anyway)");
  command->add_option("--trials", options->trials, "Search at most that many configs in all")
      ->check(CLI::PositiveNumber);
  command->add_option("--jobs", options->jobs, "Trials at a time (default: what the engine can)")
      ->check(CLI::PositiveNumber);
  command->add_option("--shape", options->shape, "In place of the sweep's shape")
      ->type_name("SHAPE");
  command
      ->add_option("--set", options->assignments,
                   "Set a knob of the base config (\"list knobs\"); may be given several times")
      ->allow_extra_args(false)
      ->type_name("KNOB=VALUE");
  command->add_option("--engine", options->engine, "In place of the sweep's: auto, sim or cuda")
      ->type_name("ENGINE");
  command->add_option("--profile", options->profile, "In place of the sweep's device profile")
      ->type_name("PROFILE");
  add_gemm_option(*command, options->gemm);
  add_rest_option(*command, options->rest_ms);
  command
      ->add_option("--shard", options->shard,
                   "Search one of N parts of the configs; \"merge\" joins the logs")
      ->type_name("I/N");
  command->add_flag_function(
      "--isolate,!--no-isolate", [options](std::int64_t given) { options->isolate = given > 0; },
      "Run trials in worker processes, which may hang or crash (default: yes, but for the "
      "simulator)");
  command->add_option("--inject-fault", options->faults)->type_name("KIND:CONSTRAINT")->group("");
  command->add_option("--top", options->top, "Rows of the table")->capture_default_str();
  command->add_flag("--report", options->report,
                    "Then write report.html, report.md and a Perfetto file");
  command->add_flag("--json", options->json, "Print the result as JSON instead of a table");
  command->footer(kFooter);
  command->callback([options, &context] {
    context.selected = [options, &context] { return run(*options, context); };
  });
}

}  // namespace fusescope::cli
