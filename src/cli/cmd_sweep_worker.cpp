// fusescope sweep-worker: what "sweep" and "tune" start to measure trials in. Not for users.

#include <CLI/CLI.hpp>
#include <filesystem>

#include "base/error.hpp"
#include "cli/command.hpp"
#include "cli/run_folder.hpp"
#include "cli/sweep_worker.hpp"
#include "cli/trial_analysis.hpp"
#include "sweep/faults.hpp"
#include "sweep/worker_process.hpp"

namespace fusescope::cli {
namespace {

sweep::WorkerSetup open_worker(const Json& message) {
  const JsonReader reader("the sweep's message", message);
  const sweep::SweepConfig config =
      sweep::parse_sweep_config(reader.at("document").value(), reader.at("file").as_string());
  std::vector<std::string> faults;
  for (std::size_t i = 0; i < reader.at("faults").size(); ++i) {
    faults.push_back(reader.at("faults").element(i).as_string());
  }
  sweep::WorkerSetup setup;
  setup.engine = make_sweep_engine(config, faults);
  setup.problem = make_sweep_problem(config);
  setup.measure = config.measure;
  setup.command = reader.at("command").as_string();
  // Recording every trial on hardware would cost more than measuring it: there the winner alone is.
  if (setup.engine->name() == "sim") {
    setup.analyse = analyse_trial;
  }
  setup.keep = [measure = config.measure, command = setup.command](
                   engine::Engine& engine, const Problem& problem, const Config& kept,
                   const std::string& folder) {
    keep_run(engine, problem, measure, kept, command, folder);
  };
  return setup;
}

}  // namespace

Json open_message(const WorkerOrder& order) {
  return {{"document", order.config->document},
          {"file", order.config->file},
          {"faults", order.faults},
          {"command", order.command}};
}

std::vector<std::string> worker_command() {
  return {std::filesystem::read_symlink("/proc/self/exe").string(), kWorkerCommand};
}

std::unique_ptr<engine::Engine> make_sweep_engine(const sweep::SweepConfig& config,
                                                  const std::vector<std::string>& faults) {
  std::unique_ptr<engine::Engine> engine;
  try {
    engine = engine::make_engine({config.engine, config.profile, {}});
  } catch (const InputError& error) {
    InputError::Parts parts = error.parts();
    if (!parts.file.empty()) {
      throw;
    }
    parts.file = config.file;
    parts.place = config.profile.empty() || config.engine == "cuda" ? "/engine" : "/profile";
    throw InputError(parts);
  }
  std::vector<sweep::Fault> parsed;
  for (const std::string& fault : faults) {
    parsed.push_back(sweep::parse_fault(fault, "--inject-fault"));
  }
  return parsed.empty() ? std::move(engine) : sweep::make_faulty(std::move(engine), parsed);
}

Problem make_sweep_problem(const sweep::SweepConfig& config) {
  try {
    return make_problem(config.shape, config.routing);
  } catch (const InputError& error) {
    const InputError::Parts& parts = error.parts();
    if (!parts.file.empty()) {
      throw;
    }
    throw InputError({config.file, "/routing", parts.problem, parts.accepted});
  }
}

void keep_run(engine::Engine& engine, const Problem& problem, const sweep::Measure& measure,
              const Config& config, const std::string& command, const std::string& folder) {
  engine::RunRequest request;
  request.problem = &problem;
  request.config = config;
  request.warmup = measure.warmup;
  request.min_samples = measure.min_samples;
  request.target_rel_ci = measure.target_rel_ci;
  request.max_seconds = measure.max_seconds;
  request.rest_ms = measure.rest_ms;
  request.seed = measure.seed;
  request.timeline = true;
  request.command = command;
  const Run run = run_once(engine, request);
  write_run(folder, run_document(engine, request, run), run);
  if (!run.timeline_violation.empty()) {
    throw CheckFailure("the recorded timeline breaks the event contract: " +
                       run.timeline_violation);
  }
}

void add_sweep_worker(CLI::App& app, Context& context) {
  CLI::App* command = app.add_subcommand(kWorkerCommand, "Measures the trials of a sweep");
  command->group("");  // not in --help: a sweep starts it, with a socket to talk over
  command->callback([&context] {
    context.selected = [] { return sweep::serve_worker(sweep::kWorkerSocket, open_worker); };
  });
}

}  // namespace fusescope::cli
