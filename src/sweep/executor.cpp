#include "sweep/executor.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <exception>
#include <utility>

#include "base/error.hpp"
#include "sweep/statistics.hpp"

namespace fusescope::sweep {
namespace {

class InProcess : public Executor {
 public:
  InProcess(engine::Engine& engine, const Problem& problem, const Measure& measure, Analyse analyse,
            std::string command)
      : engine_(engine),
        problem_(problem),
        measure_(measure),
        analyse_(std::move(analyse)),
        command_(std::move(command)) {}

  Trial execute(Trial planned) override {
    const auto begin = std::chrono::steady_clock::now();
    Trial trial = std::move(planned);
    trial.reason = why_illegal(problem_, trial.config, engine_.device());
    if (!trial.reason.empty()) {
      trial.verdict = Verdict::illegal;
    } else {
      try {
        run(trial);
      } catch (const InputError& error) {
        fail(trial, Verdict::illegal, error.what());
      } catch (const std::exception& error) {
        fail(trial, Verdict::aborted, error.what());
      } catch (...) {
        fail(trial, Verdict::aborted, "an exception of unknown type");
      }
    }
    trial.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    return trial;
  }

 private:
  void run(Trial& trial) {
    engine::RunRequest request;
    request.problem = &problem_;
    request.config = trial.config;
    request.warmup = measure_.warmup;
    request.min_samples = measure_.min_samples;
    request.target_rel_ci = measure_.target_rel_ci;
    request.max_seconds = measure_.max_seconds;
    request.seed = measure_.seed;
    request.timeline = static_cast<bool>(analyse_);
    request.command = command_;
    const engine::RunResult result = engine_.run(request);

    trial.source = result.source;
    for (const engine::Sample& sample : result.samples) {
      trial.wall_us.push_back(sample.wall_us);
    }
    if (trial.wall_us.empty()) {
      throw CheckFailure("the engine returned no sample");
    }
    if (!std::all_of(trial.wall_us.begin(), trial.wall_us.end(),
                     [](double wall) { return std::isfinite(wall) && wall > 0; })) {
      throw CheckFailure("the engine returned a wall time that is no positive number");
    }
    const MedianInterval interval = median_interval(trial.wall_us);
    trial.median_us = interval.median;
    trial.half_ci_us = interval.half_width();
    if (analyse_ && result.timeline) {
      analyse_(*result.timeline, trial);
    }
  }

  // Nothing that a failed trial got half way counts.
  static void fail(Trial& trial, Verdict verdict, const std::string& reason) {
    Trial failed;
    failed.id = trial.id;
    failed.label = trial.label;
    failed.config = trial.config;
    failed.source = trial.source;
    failed.verdict = verdict;
    failed.reason = reason;
    trial = std::move(failed);
  }

  engine::Engine& engine_;
  const Problem& problem_;
  Measure measure_;
  Analyse analyse_;
  std::string command_;
};

}  // namespace

std::unique_ptr<Executor> make_in_process(engine::Engine& engine, const Problem& problem,
                                          const Measure& measure, Analyse analyse,
                                          std::string command) {
  return std::make_unique<InProcess>(engine, problem, measure, std::move(analyse),
                                     std::move(command));
}

}  // namespace fusescope::sweep
