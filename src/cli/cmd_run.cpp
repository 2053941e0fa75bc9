// fusescope run: one config, its wall time, and where the time goes.

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <optional>

#include "cli/command.hpp"
#include "cli/common_options.hpp"
#include "cli/files.hpp"
#include "cli/run_folder.hpp"
#include "cli/rung_series_folder.hpp"
#include "cli/text.hpp"
#include "sweep/tuned_table.hpp"

namespace fusescope::cli {
namespace {

struct RunOptions {
  ProblemOptions problem;
  EngineFlags engine;
  ConfigOptions config;
  int samples = 20;
  double max_seconds = 3;
  std::optional<int> rest_ms;
  std::uint64_t seed = 1;
  bool trace = true;
  std::string iteration = "median";
  bool counters = false;
  bool rungs = false;
  int rung_rounds = 10;
  std::string across;
  std::string out;
  bool force = false;
  bool json = false;
};

constexpr const char* kFooter =
    "\nExamples:\n"
    "  fusescope run --shape seed-tp4 --routing zipf:1.0\n"
    "  fusescope run --set dispatch_comm_sms=8 --set all_hands=false --out out/run\n"
    "  fusescope run --set form=serial                    the baseline\n"
    "  fusescope run --engine cuda --shape seed-tp2 --routing uniform --devices 0,1\n"
    "  fusescope run --engine cuda --ranks 4              ranks share GPUs where there are fewer\n"
    "  fusescope run --engine cuda --iteration slowest --out out/slow\n"
    "  fusescope run --engine cuda --rest-ms 10            GPUs below their power limit\n"
    "  fusescope run --rungs --out out/rungs              what each cost adds to the wall\n"
    "  fusescope run --rungs --across dispatch_comm_sms=4,8,16,32 --out out/tax\n"
    "  fusescope run --config out/quickstart/best/run.json --json\n"
    "  fusescope run --shape seed-tp2 --config tuned      what \"list tuned\" has for the problem";

// What is run, and where its knobs come from when "--config tuned" looked them up.
struct ChosenConfig {
  Config config;
  std::string from;
};

// What only a run on GPUs can say.
void print_measured(const engine::RunResult& result) {
  std::string gpus;
  for (const int gpu : result.gpus) {
    gpus += fmt::format("{}{}", gpus.empty() ? "" : ", ", gpu);
  }
  std::printf("GPUs      %s\n", gpus.c_str());
  std::printf("GEMMs by  %s\n", result.gemm.c_str());
  if (!result.collectives.empty()) {
    std::printf("rows by   %s\n", wrapped(result.collectives, 10).c_str());
  }
  std::printf("outputs   relative error %.1e against the reference, equal in every sample\n",
              result.relative_error);
  std::vector<double> clocks;
  for (const engine::Sample& sample : result.samples) {
    clocks.push_back(sample.sm_clock_mhz);
  }
  const Spread clock = spread(clocks);
  if (clock.low > 0) {
    std::printf("SM clock  %.0f MHz in the kernels (median; %.0f to %.0f)\n", clock.median,
                clock.low, clock.high);
  }
}

// A row per phase in the order of an iteration, a column per GPU.
void print_phases(const engine::RunResult& result) {
  if (result.phases.empty()) {
    return;
  }
  std::string head = fmt::format("\n{:<18}", "phase, us");
  std::string rows;
  for (const int gpu : result.gpus) {
    head += fmt::format(" {:>9}", fmt::format("GPU {}", gpu));
  }
  const std::size_t count = result.phases.size() / result.gpus.size();
  for (std::size_t i = 0; i < count; ++i) {
    rows += fmt::format("{:<18}", timeline::name(result.phases[i].kind));
    for (std::size_t gpu = 0; gpu < result.gpus.size(); ++gpu) {
      rows += fmt::format(" {:>9.1f}", result.phases[gpu * count + i].us);
    }
    rows += '\n';
  }
  std::printf("%s\n%s", head.c_str(), rows.c_str());
  std::printf("One iteration of its own, with a mark after each phase: not one of the samples.\n");
}

// What a recorded timeline is good for.
void print_recording(const Run& run) {
  if (!run.result.timeline) {
    if (!run.result.why_no_timeline.empty()) {
      std::printf("\nno timeline: %s\n", run.result.why_no_timeline.c_str());
    }
    return;
  }
  const timeline::Meta& meta = run.result.timeline->meta;
  if (meta.recorded_us > 0) {
    std::printf("\ntimeline  %s\n", wrapped(meta.chosen, 10).c_str());
    std::printf(
        "          recording costs %+.2f%%: median %.1f us without, %.1f us with, in turns\n",
        100 * (meta.recorded_us / meta.unrecorded_us - 1), meta.unrecorded_us, meta.recorded_us);
    std::printf("SM clock  %.0f MHz in dispatch_gemm, %.0f MHz in gemm_combine_push\n",
                meta.dispatch_clock_mhz, meta.combine_clock_mhz);
    std::printf("clocks    %s\n", wrapped(meta.clocks, 10).c_str());
  }
  if (!run.result.why_no_counters.empty()) {
    std::printf("counters  none: %s\n", wrapped(run.result.why_no_counters, 10).c_str());
  }
  if (meta.dropped > 0) {
    std::printf("records   %llu are missing: buffers were full, or an event is not whole\n",
                static_cast<unsigned long long>(meta.dropped));
  }
  if (!run.timeline_violation.empty()) {
    std::printf("checked   FAILED: %s\n", wrapped(run.timeline_violation, 10).c_str());
  } else if (meta.recorded_us > 0) {
    std::printf("checked   no effect before its cause by more than the clocks' bound; %s\n",
                meta.dropped == 0 ? "no record is missing" : "as far as there are records");
  }
}

void print_choice(const ChosenConfig& chosen) {
  if (!chosen.from.empty()) {
    std::printf("tuned     %s\n", wrapped(chosen.from, 10).c_str());
  }
}

void print_text(const Problem& problem, const ChosenConfig& chosen, const Run& run, int rest_ms) {
  const std::size_t samples = run.result.samples.size();
  const std::string interval =
      run.wall_us.half_width() > 0
          ? fmt::format(" +- {:.1f} us (95% of the median)", run.wall_us.half_width())
          : "";
  std::printf("problem   %s\n", describe(problem).c_str());
  std::printf("config    %s\n", describe(chosen.config).c_str());
  print_choice(chosen);
  std::printf("source    %s\n", run.result.source.c_str());
  const bool measured = run.result.provenance == timeline::Provenance::measured;
  const bool exact = samples == 1 && !measured;
  const std::string how =
      exact ? "one iteration: the simulation has no noise"
            : fmt::format("median of {} sample{}{}", samples, samples == 1 ? "" : "s",
                          measured ? ", " + engine::describe_rest(rest_ms) : "");
  std::printf("wall      %.1f us%s, %s\n", run.wall_us.median, interval.c_str(), how.c_str());
  if (measured) {
    const Spread wall = wall_spread(run.result);
    std::printf("spread    %.1f to %.1f us (10%% to 90%% of the samples)\n", wall.low, wall.high);
    print_measured(run.result);
    print_phases(run.result);
  }
  print_recording(run);
  if (run.attribution) {
    std::printf("\n%s", attribution_text(*run.attribution).c_str());
  }
  if (run.rungs) {
    std::printf("\n%s", analysis::rungs_text(*run.rungs).c_str());
  }
}

engine::RunRequest request_of(const RunOptions& options, const Context& context,
                              const Problem& problem, const Config& config) {
  engine::RunRequest request;
  request.problem = &problem;
  request.config = config;
  request.min_samples = options.samples;
  request.max_seconds = options.max_seconds;
  request.rest_ms = options.rest_ms.value_or(0);
  request.seed = options.seed;
  request.deadline_ms = options.engine.deadline_ms;
  request.timeline = options.trace;
  request.phases = options.trace;
  request.counters = options.counters;
  request.rung_rounds = options.rungs ? options.rung_rounds : 0;
  request.iteration = engine::parse_iteration_choice(options.iteration);
  request.command = context.command;
  return request;
}

Json document_of(const engine::Engine& engine, const engine::RunRequest& request, const Run& run,
                 const ChosenConfig& chosen) {
  Json document = run_document(engine, request, run);
  if (!chosen.from.empty()) {
    document["config_from"] = chosen.from;
  }
  return document;
}

// A run per value, each in a folder of its own, then all side by side.
int execute_across(const RunOptions& options, const Context& context, engine::Engine& engine,
                   const Problem& problem, const ChosenConfig& base) {
  const Across across = parse_across(options.across);
  std::vector<engine::RunRequest> requests;
  for (std::size_t i = 0; i < across.values.size(); ++i) {
    Config config = base.config;
    set_knob_text(config, across.knob + "=" + across.values[i], "--across");
    if (const std::string why = why_illegal(problem, config, engine.device()); !why.empty()) {
      throw InputError({"--across", across.knob + "=" + across.values[i], why,
                        "values that the device can run"});
    }
    requests.push_back(request_of(options, context, problem, config));
    require_free(joined(options.out, across.folder(i)), requests.back(), options.force);
  }
  make_folder(options.out, "--out");
  analysis::RungSeries series{across.knob, across.values, {}};
  int outcome = kFine;
  for (std::size_t i = 0; i < requests.size(); ++i) {
    const Run run = run_once(engine, requests[i]);
    write_run(joined(options.out, across.folder(i)), document_of(engine, requests[i], run, base),
              run);
    series.rungs.push_back(*run.rungs);
    outcome = run.timeline_violation.empty() ? outcome : kCheckFailed;
  }
  const Json document = series_document(across, context.command);
  write_text(joined(options.out, kSeriesFile), document.dump(2) + "\n");
  if (options.json) {
    std::printf("%s\n", document.dump(2).c_str());
    return outcome;
  }
  std::printf("problem   %s\n", describe(problem).c_str());
  print_choice(base);
  std::printf("\n%s\nWritten: %s and %zu runs; `fusescope report %s` makes a page of them\n",
              analysis::series_text(series).c_str(), joined(options.out, kSeriesFile).c_str(),
              requests.size(), options.out.c_str());
  return outcome;
}

int execute(const RunOptions& options, const Context& context) {
  const Problem problem = options.problem.problem();
  const std::unique_ptr<engine::Engine> engine = options.engine.make();
  ChosenConfig chosen;
  chosen.config = options.config.config([&] {
    const sweep::TunedChoice choice = sweep::tuned_choice(
        sweep::tuned_tables(sweep::tuned_table_path()),
        sweep::tuned_key(engine->name(), engine->device(), problem), options.rest_ms.value_or(0));
    chosen.from = choice.from;
    return choice.entry.config;
  });
  if (!options.across.empty()) {
    return execute_across(options, context, *engine, problem, chosen);
  }
  require_legal(options.config, problem, chosen.config, engine->device());

  const engine::RunRequest request = request_of(options, context, problem, chosen.config);
  if (!options.out.empty()) {
    require_free(options.out, request, options.force);
    make_folder(options.out, "--out");
  }

  const Run run = run_once(*engine, request);
  const Json document = document_of(*engine, request, run, chosen);
  if (!options.out.empty()) {
    write_run(options.out, document, run);
  }
  const int outcome = run.timeline_violation.empty() ? kFine : kCheckFailed;
  if (options.json) {
    std::printf("%s\n", document.dump(2).c_str());
    return outcome;
  }
  print_text(problem, chosen, run, request.rest_ms);
  if (!options.out.empty()) {
    std::printf("\nWritten: %s%s%s\n", joined(options.out, kRunFile).c_str(),
                run.result.timeline ? ", " : "",
                run.result.timeline ? joined(options.out, kTimelineFile).c_str() : "");
  }
  return outcome;
}

}  // namespace

void add_run(CLI::App& app, Context& context) {
  const auto options = std::make_shared<RunOptions>();
  CLI::App* command = app.add_subcommand("run", "Run one config: wall time and attribution");
  options->problem.add_to(*command);
  options->config.add_to(*command);
  options->engine.add_to(*command);
  command->add_option("--samples", options->samples, "Take at least that many samples")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  command->add_option("--max-seconds", options->max_seconds, "Stop sampling after that long")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  add_rest_option(*command, options->rest_ms);
  command->add_option("--seed", options->seed, "Seed of the engine's noise")->capture_default_str();
  command->add_flag("--trace,!--no-trace", options->trace,
                    "Record iterations and attribute one (default); on GPUs also: time its phases");
  command
      ->add_option("--iteration", options->iteration,
                   "On GPUs: which of the recorded iterations: median, slowest, or a number from 0")
      ->capture_default_str();
  command->add_flag("--counters", options->counters,
                    "On GPUs: sample tensor pipes, NVLink and DRAM beside what is recorded");
  CLI::Option* rungs = command->add_flag(
      "--rungs", options->rungs,
      "Also run the layer with one cost after the other taken away: SM tax, contention, waiting");
  command->add_option("--rung-rounds", options->rung_rounds, "Rounds of turns of the rungs")
      ->check(CLI::PositiveNumber)
      ->needs(rungs)
      ->capture_default_str();
  CLI::Option* out =
      command->add_option("--out", options->out, "Folder for run.json and timeline.fst")
          ->type_name("DIR");
  command
      ->add_option("--across", options->across,
                   "The rungs at each of these values of a knob, side by side; a run's folder each")
      ->type_name("KNOB=VALUE,...")
      ->needs(rungs)
      ->needs(out);
  command->add_flag("--force", options->force, "Write into --out whatever it holds");
  command->add_flag("--json", options->json, "Print run.json instead of text");
  command->footer(kFooter);
  command->callback([options, &context] {
    context.selected = [options, &context] { return execute(*options, context); };
  });
}

}  // namespace fusescope::cli
