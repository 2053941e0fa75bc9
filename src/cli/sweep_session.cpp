#include "cli/sweep_session.hpp"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <utility>

#include "analysis/ladder.hpp"
#include "base/error.hpp"
#include "base/file_bytes.hpp"
#include "base/hash.hpp"
#include "base/version.hpp"
#include "cli/files.hpp"
#include "cli/interrupt.hpp"
#include "cli/prediction.hpp"
#include "cli/progress.hpp"
#include "cli/run_folder.hpp"
#include "cli/sweep_folder.hpp"
#include "cli/sweep_worker.hpp"
#include "cli/trial_analysis.hpp"
#include "sweep/finalists.hpp"
#include "sweep/legality.hpp"
#include "sweep/results.hpp"
#include "sweep/search_space.hpp"

namespace fusescope::cli {

std::string binary_hash() {
  StableHash hash;
  hash.add(read_file_bytes("/proc/self/exe"));
  return sweep::hex(hash.value());
}

SweepSession::SweepSession(sweep::SweepConfig config, SessionOptions options,
                           const Context& context)
    : config_(std::move(config)),
      options_(std::move(options)),
      context_(context),
      problem_(make_sweep_problem(config_)) {
  open_engine();
  sweep::require_legal(config_, problem_, device_);
  require_sweep_folder(options_.out);
  if (options_.resume && !holds_sweep(options_.out)) {
    throw InputError({"--resume", options_.out, "holds no trials.jsonl to go on with",
                      "the folder of an earlier run of this sweep, or no --resume"});
  }
}

SweepSession::~SweepSession() = default;

// What may take the process down runs in another one. The device's runtime is never touched here: what
// device there is, the worker says.
void SweepSession::open_engine() {
  const auto begin = std::chrono::steady_clock::now();
  const bool isolate =
      options_.isolate.value_or(config_.engine != "sim" || !options_.faults.empty());
  if (isolate) {
    sweep::WorkerOptions worker;
    worker.command = worker_command();
    worker.open = open_message({&config_, options_.faults, context_.command});
    worker.max_seconds = config_.measure.max_seconds;
    const double rest_seconds = config_.measure.rest_ms / 1e3;
    worker.rest_seconds = rest_seconds * (config_.measure.warmup + 1);
    worker.keep_rest_seconds = rest_seconds * 2 * engine::kRecordedIterations;
    worker.deadline_seconds = config_.measure.deadline_seconds;
    auto executor = std::make_unique<sweep::IsolatedExecutor>(std::move(worker));
    const sweep::WorkerHello& hello = executor->hello();
    // A sweep that leaves the choice of the engine open and gets the simulator needs no worker.
    if (hello.engine != "sim" || options_.isolate.has_value() || !options_.faults.empty()) {
      engine_name_ = hello.engine;
      identity_ = hello.identity;
      device_ = hello.device;
      jobs_ = hello.parallel_runs;
      isolated_ = executor.get();
      executor_ = std::move(executor);
    } else {
      config_.engine = "sim";
    }
  }
  if (!executor_) {
    engine_ = make_sweep_engine(config_, options_.faults);
    engine_name_ = engine_->name();
    identity_ = engine_->identity();
    device_ = engine_->device();
    jobs_ = engine_->parallel_runs();
    const sweep::Analyse analyse =
        engine_name_ == "sim" ? sweep::Analyse(analyse_trial) : sweep::Analyse();
    executor_ = sweep::make_in_process(
        {engine_.get(), &problem_, config_.measure, analyse, context_.command});
  }
  if (options_.jobs > 0) {
    jobs_ = std::min(options_.jobs, jobs_);
  }
  if (isolated_ != nullptr) {
    isolated_->set_workers(jobs_);
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
    outcome_.startup_seconds = took.count();
    outcome_.seconds = took.count();
  }
  outcome_.rest_ms = rest_ms();
}

void SweepSession::run() {
  const InterruptFlag interrupt;
  make_folder(options_.out, "--out");
  log_ = std::make_unique<sweep::TrialLog>(joined(options_.out, kTrialsFile), header());
  announce();
  write_text(joined(options_.out, kSweepFile), config_.document.dump(2) + "\n");
  if (options_.compare.empty()) {
    search();
  }
  if (!stopped_) {
    finals(options_.compare.empty()
               ? sweep::finalist_rounds(log_->trials(), config_.finalists,
                                        sweep::SearchSpace(config_, device_).holds(config_.base))
               : sweep::rounds_of_turns(options_.compare, config_.finalists.rounds));
  }
  std::optional<sweep::Trial> best = sweep::best_trial(log_->trials());
  if (best && config_.ladder && options_.compare.empty() && !stopped_) {
    ladder(best->config);
  }
  write_exports(options_.out, header(), sweep::latest(log_->trials()));
  if (best && !stopped_) {
    keep_best(best->config);
  }
}

int SweepSession::rest_ms() const {
  return engine_name_ == "sim" ? 0 : config_.measure.rest_ms;
}

std::string SweepSession::sampling() const {
  return engine_name_ == "sim" ? "" : engine::describe_rest(config_.measure.rest_ms);
}

sweep::LogHeader SweepSession::header() const {
  return {version_line(),
          binary_hash(),
          engine_name_,
          identity_,
          describe(problem_),
          sweep::hex(hash(problem_)),
          config_.name,
          sweep::identity(config_).dump(),
          context_.command,
          utc_now(),
          device_};
}

void SweepSession::announce() const {
  std::fprintf(stderr, "%s: %s on %s\n", config_.name.c_str(), describe(problem_).c_str(),
               device_.name.c_str());
  if (!log_->repair().empty()) {
    std::fprintf(stderr, "%s: %s\n", log_->path().c_str(), log_->repair().c_str());
  }
  if (log_->resumed()) {
    std::fprintf(stderr, "Resuming: %s holds %zu trials.\n", log_->path().c_str(),
                 log_->trials().size());
  }
}

sweep::RunnerOptions SweepSession::runner_options(ProgressLine& line) const {
  sweep::RunnerOptions runner;
  runner.jobs = jobs_;
  runner.stop = &InterruptFlag::raised();
  runner.progress = [&line](const sweep::Progress& progress) { line.show(progress); };
  runner.base = config_.base;
  runner.base_every =
      config_.measure.base_every.value_or(engine_name_ == "sim" ? 0 : sweep::kBaseEvery);
  return runner;
}

void SweepSession::search() {
  ProgressLine line("search");
  sweep::Predict predict;
  if (config_.search.kind == sweep::SearchKind::sim_guided) {
    predict = make_prediction(config_.search.profile, problem_);
  }
  outcome_.ending = sweep::Ending::complete;
  const sweep::Outcome outcome =
      sweep::run_search(config_, device_, *executor_, *log_, runner_options(line), predict);
  outcome_.ending = outcome.ending;
  outcome_.ran = outcome.ran;
  outcome_.found = outcome.found;
  outcome_.planned = outcome.planned;
  add(outcome);
}

void SweepSession::finals(const std::vector<sweep::Given>& turns) {
  if (turns.empty()) {
    return;
  }
  ProgressLine line("finalists");
  sweep::RunnerOptions runner = runner_options(line);
  runner.jobs = 1;  // in turns
  add(sweep::run_given(turns, config_.finalists.samples, config_.measure, *executor_, *log_,
                       runner));
}

void SweepSession::ladder(const Config& tuned) {
  std::vector<sweep::Given> rungs;
  for (const analysis::LadderRung& rung : analysis::ladder_configs(config_.base, tuned)) {
    rungs.push_back({sweep::TrialKind::rung, rung.name, rung.config, 0});
  }
  ProgressLine line("ladder");
  add(sweep::run_given(rungs, 0, config_.measure, *executor_, *log_, runner_options(line)));
}

void SweepSession::add(const sweep::Outcome& outcome) {
  stopped_ = stopped_ || outcome.ending == sweep::Ending::stopped;
  outcome_.base_ran += outcome.base_ran;
  outcome_.seconds += outcome.seconds;
  outcome_.engine_seconds += outcome.engine_seconds;
  outcome_.sample_seconds += outcome.sample_seconds;
}

// Runs the winner once more with its timeline kept. Should that fail, what was measured still counts.
void SweepSession::keep_best(const Config& best) {
  const std::string folder = joined(options_.out, kBestFolder);
  try {
    if (isolated_ != nullptr) {
      isolated_->keep(best, folder);
    } else {
      keep_run(*engine_, problem_, config_.measure, best, context_.command, folder);
    }
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s: the winner's run is not kept: %s\n", folder.c_str(), error.what());
    kept_ = false;
  }
}

}  // namespace fusescope::cli
