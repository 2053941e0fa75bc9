// fusescope sweep: searches the configs that a sweep file spans, then runs the ladder, keeps the winner's
// run, prints a table and, if asked, writes the report.

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <filesystem>
#include <memory>

#include "analysis/ladder.hpp"
#include "base/error.hpp"
#include "base/version.hpp"
#include "cli/command.hpp"
#include "cli/files.hpp"
#include "cli/interrupt.hpp"
#include "cli/progress.hpp"
#include "cli/report_input.hpp"
#include "cli/run_folder.hpp"
#include "cli/sweep_folder.hpp"
#include "cli/sweep_json.hpp"
#include "sweep/legality.hpp"
#include "sweep/runner.hpp"
#include "sweep/summary.hpp"
#include "timeline/writers.hpp"

namespace fusescope::cli {
namespace {

struct SweepOptions {
  std::string sweep;
  std::string out;
  std::string engine;
  std::string profile;
  long long trials = 0;
  int jobs = 0;
  std::size_t top = 10;
  bool resume = false;
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
    "  fusescope sweep quickstart --profile h200-nvlink --out out/quickstart-h200";

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
  }
  sweep::SweepConfig config = sweep::parse_sweep_config(document, file);
  if (options.trials > 0) {
    config.search.trials = options.trials;
    config.document["search"]["strategy"] = sweep::name(config.search.kind);
    config.document["search"]["budget"]["trials"] = options.trials;
  }
  return config;
}

std::unique_ptr<engine::Engine> make_engine(const sweep::SweepConfig& config,
                                            const SweepOptions& options) {
  try {
    return engine::make_engine({config.engine, config.profile, {}});
  } catch (const InputError& error) {
    InputError::Parts parts = error.parts();
    if (!parts.file.empty()) {
      throw;
    }
    const bool overridden = !options.engine.empty() || !options.profile.empty();
    parts.file = overridden ? "--engine, --profile" : config.file;
    parts.place = config.profile.empty() ? "/engine" : "/profile";
    throw InputError(parts);
  }
}

Problem make_sweep_problem(const sweep::SweepConfig& config) {
  try {
    return make_problem(config.shape, config.routing);
  } catch (const InputError& error) {
    InputError::Parts parts = error.parts();
    if (!parts.file.empty()) {
      throw;
    }
    throw InputError({config.file, "/routing", parts.problem, parts.accepted});
  }
}

void analyse(const timeline::Timeline& timeline, sweep::Trial& trial) {
  const std::string violation = timeline::check(timeline);
  if (!violation.empty()) {
    throw CheckFailure("the recorded timeline breaks the event contract: " + violation);
  }
  const analysis::Attribution attribution = analysis::attribute(timeline);
  if (!attribution.refusal.empty()) {
    throw CheckFailure("nothing is attributed: " + attribution.refusal);
  }
  trial.steps_us = analysis::steps_us(attribution.path);
  trial.timeline_wall_us = static_cast<double>(attribution.wall_ns) / 1e3;
  trial.exposed_us = static_cast<double>(attribution.exposed_ns) / 1e3;
}

// One sweep on its way: what its steps share.
class Session {
 public:
  Session(const SweepOptions& options, const Context& context)
      : options_(options),
        context_(context),
        config_(load_config(options)),
        folder_(options.out.empty() ? joined("out", config_.name) : options.out),
        problem_(make_sweep_problem(config_)),
        engine_(make_engine(config_, options)) {
    sweep::require_legal(config_, problem_, engine_->device());
    require_sweep_folder(folder_);
    if (options_.resume && !holds_sweep(folder_)) {
      throw InputError({"--resume", folder_, "holds no trials.jsonl to go on with",
                        "the folder of an earlier run of this sweep, or no --resume"});
    }
  }

  int run() {
    const InterruptFlag interrupt;
    make_folder(folder_, "--out");
    sweep::TrialLog log(joined(folder_, kTrialsFile), header());
    announce(log);
    write_text(joined(folder_, kSweepFile), config_.document.dump(2) + "\n");
    const auto executor =
        sweep::make_in_process(*engine_, problem_, config_.measure, analyse, context_.command);

    const sweep::Outcome outcome = search(*executor, log);
    bool stopped = outcome.ending == sweep::Ending::stopped;
    const std::optional<sweep::Trial> best = sweep::best_trial(log.trials());
    if (best && config_.ladder && !stopped) {
      stopped = ladder(best->config, *executor, log).ending == sweep::Ending::stopped;
    }
    write_text(joined(folder_, kCsvFile), sweep::to_csv(sweep::latest(log.trials())));
    if (best && !stopped) {
      keep_best(*best);
    }
    print(log, outcome);
    if (options_.report && !stopped) {
      write_reports();
    }
    if (stopped) {
      std::fprintf(stderr, "Interrupted. The log is whole; the same command goes on from here.\n");
      return kInterrupted;
    }
    if (!best) {
      std::fprintf(stderr, "fusescope: %s: no trial ran\n", folder_.c_str());
      return kCheckFailed;
    }
    return kFine;
  }

 private:
  sweep::LogHeader header() const {
    return {version_line(),
            engine_->name(),
            engine_->identity(),
            describe(problem_),
            sweep::hex(hash(problem_)),
            config_.name,
            sweep::identity(config_).dump(),
            context_.command,
            utc_now()};
  }

  void announce(const sweep::TrialLog& log) const {
    std::fprintf(stderr, "%s: %s on %s\n", config_.name.c_str(), describe(problem_).c_str(),
                 engine_->device().name.c_str());
    if (!log.repair().empty()) {
      std::fprintf(stderr, "%s: %s\n", log.path().c_str(), log.repair().c_str());
    }
    if (log.resumed()) {
      std::fprintf(stderr, "Resuming: %s holds %zu trials.\n", log.path().c_str(),
                   log.trials().size());
    }
  }

  sweep::RunnerOptions runner_options(ProgressLine& line) const {
    sweep::RunnerOptions runner;
    runner.jobs = options_.jobs > 0 ? std::min(options_.jobs, engine_->parallel_runs())
                                    : engine_->parallel_runs();
    runner.stop = &InterruptFlag::raised();
    runner.progress = [&line](const sweep::Progress& progress) { line.show(progress); };
    return runner;
  }

  sweep::Outcome search(sweep::Executor& executor, sweep::TrialLog& log) const {
    ProgressLine line("search");
    return sweep::run_search(config_, engine_->device(), executor, log, runner_options(line));
  }

  sweep::Outcome ladder(const Config& tuned, sweep::Executor& executor,
                        sweep::TrialLog& log) const {
    std::vector<sweep::Labelled> rungs;
    for (const analysis::LadderRung& rung : analysis::ladder_configs(config_.base, tuned)) {
      rungs.push_back({rung.name, rung.config});
    }
    ProgressLine line("ladder");
    return sweep::run_labelled(rungs, executor, log, runner_options(line));
  }

  // Runs the winner once more with its timeline kept.
  void keep_best(const sweep::Trial& best) const {
    engine::RunRequest request;
    request.problem = &problem_;
    request.config = best.config;
    request.warmup = config_.measure.warmup;
    request.min_samples = config_.measure.min_samples;
    request.target_rel_ci = config_.measure.target_rel_ci;
    request.max_seconds = config_.measure.max_seconds;
    request.seed = config_.measure.seed;
    request.timeline = true;
    request.command = context_.command;
    const Run run = run_once(*engine_, request);
    write_run(joined(folder_, kBestFolder), run_document(*engine_, request, run), run);
  }

  void print(const sweep::TrialLog& log, const sweep::Outcome& outcome) const {
    if (options_.json) {
      std::printf("%s\n", sweep_json(folder_, log.trials(), outcome).dump(2).c_str());
      return;
    }
    const std::optional<sweep::Trial> best = sweep::best_trial(log.trials());
    sweep::SummaryOptions summary{options_.top, {}};
    for (const sweep::Axis& axis : config_.axes) {
      summary.knobs.push_back(axis.knob);
    }
    std::printf("\n%s%s%s", best ? best->source.c_str() : "", best ? "\n\n" : "",
                sweep::summary_text(log.trials(), summary).c_str());
    if (outcome.ending == sweep::Ending::budget_spent) {
      std::printf("\nThe budget of %g s ended the search at %lld of %lld trials.\n",
                  config_.search.seconds, outcome.found + outcome.ran, outcome.planned);
    }
    std::printf("\nTrials: %s, %s\n", log.path().c_str(), joined(folder_, kCsvFile).c_str());
  }

  void write_reports() const {
    const reports::ReportInput input = sweep_report_input(folder_);
    std::vector<std::string> paths;
    if (input.chosen) {
      const timeline::Format& format = timeline::find_format("perfetto");
      paths.push_back(joined(folder_, kBestFolder) + std::string(format.extension));
      timeline::write_timeline(input.chosen->timeline, paths.back(), format);
    }
    // The input is read again, because the report lists the files that lie beside it.
    const reports::ReportFiles files = reports::write_report(sweep_report_input(folder_), folder_);
    paths.insert(paths.end(), files.paths.begin(), files.paths.end());
    for (const std::string& path : paths) {
      std::fprintf(options_.json ? stderr : stdout, "Written: %s\n", path.c_str());
    }
    if (!files.note.empty()) {
      std::fprintf(stderr, "%s\n", files.note.c_str());
    }
  }

  const SweepOptions& options_;
  const Context& context_;
  sweep::SweepConfig config_;
  std::string folder_;
  Problem problem_;
  std::unique_ptr<engine::Engine> engine_;
};

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
  command->add_option("--engine", options->engine, "In place of the sweep's: auto, sim or cuda")
      ->type_name("ENGINE");
  command->add_option("--profile", options->profile, "In place of the sweep's device profile")
      ->type_name("PROFILE");
  command->add_option("--top", options->top, "Rows of the table")->capture_default_str();
  command->add_flag("--report", options->report,
                    "Then write report.html, report.md and a Perfetto file");
  command->add_flag("--json", options->json, "Print the result as JSON instead of a table");
  command->footer(kFooter);
  command->callback([options, &context] {
    context.selected = [options, &context] { return Session(*options, context).run(); };
  });
}

}  // namespace fusescope::cli
