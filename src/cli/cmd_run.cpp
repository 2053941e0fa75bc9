// fusescope run: one config, its wall time, and where the time goes.

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>

#include "cli/command.hpp"
#include "cli/common_options.hpp"
#include "cli/files.hpp"
#include "cli/run_folder.hpp"
#include "cli/text.hpp"

namespace fusescope::cli {
namespace {

struct RunOptions {
  ProblemOptions problem;
  EngineFlags engine;
  ConfigOptions config;
  int samples = 20;
  double max_seconds = 3;
  std::uint64_t seed = 1;
  bool trace = true;
  std::string out;
  bool force = false;
  bool json = false;
};

constexpr const char* kFooter =
    "\nExamples:\n"
    "  fusescope run --shape seed-tp4 --routing zipf:1.0\n"
    "  fusescope run --set dispatch_comm_sms=8 --set all_hands=false --out out/run\n"
    "  fusescope run --set form=serial                    the baseline\n"
    "  fusescope run --config out/quickstart/best/run.json --json";

void print_text(const Problem& problem, const Config& config, const Run& run) {
  const std::size_t samples = run.result.samples.size();
  const std::string interval =
      run.wall_us.half_width() > 0
          ? fmt::format(" +- {:.1f} us (95% of the median)", run.wall_us.half_width())
          : "";
  std::printf("problem   %s\n", describe(problem).c_str());
  std::printf("config    %s\n", describe(config).c_str());
  std::printf("source    %s\n", run.result.source.c_str());
  const bool exact = samples == 1 && run.result.provenance == timeline::Provenance::simulated;
  const std::string how =
      exact ? "one iteration: the simulation has no noise"
            : fmt::format("median of {} sample{}", samples, samples == 1 ? "" : "s");
  std::printf("wall      %.1f us%s, %s\n", run.wall_us.median, interval.c_str(), how.c_str());
  if (run.attribution) {
    std::printf("\n%s", attribution_text(*run.attribution).c_str());
  }
}

int execute(const RunOptions& options, const Context& context) {
  const Config config = options.config.config();
  const Problem problem = options.problem.problem();
  const std::unique_ptr<engine::Engine> engine = options.engine.make();
  require_legal(options.config, problem, config, engine->device());

  engine::RunRequest request;
  request.problem = &problem;
  request.config = config;
  request.min_samples = options.samples;
  request.max_seconds = options.max_seconds;
  request.seed = options.seed;
  request.timeline = options.trace;
  request.command = context.command;
  if (!options.out.empty()) {
    require_free(options.out, request, options.force);
    make_folder(options.out, "--out");
  }

  const Run run = run_once(*engine, request);
  const Json document = run_document(*engine, request, run);
  if (!options.out.empty()) {
    write_run(options.out, document, run);
  }
  if (options.json) {
    std::printf("%s\n", document.dump(2).c_str());
    return kFine;
  }
  print_text(problem, config, run);
  if (!options.out.empty()) {
    std::printf("\nWritten: %s%s%s\n", joined(options.out, kRunFile).c_str(),
                run.result.timeline ? ", " : "",
                run.result.timeline ? joined(options.out, kTimelineFile).c_str() : "");
  }
  return kFine;
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
  command->add_option("--seed", options->seed, "Seed of the engine's noise")->capture_default_str();
  command->add_flag("--trace,!--no-trace", options->trace,
                    "Record one iteration and attribute it (default)");
  command->add_option("--out", options->out, "Folder for run.json and timeline.fst")
      ->type_name("DIR");
  command->add_flag("--force", options->force, "Write into --out whatever it holds");
  command->add_flag("--json", options->json, "Print run.json instead of text");
  command->footer(kFooter);
  command->callback([options, &context] {
    context.selected = [options, &context] { return execute(*options, context); };
  });
}

}  // namespace fusescope::cli
