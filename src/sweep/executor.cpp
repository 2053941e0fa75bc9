#include "sweep/executor.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <exception>
#include <limits>
#include <new>
#include <utility>

#include "base/error.hpp"

namespace fusescope::sweep {
namespace {

// Samples are kept to the nanosecond: no clock that they come from is finer.
double to_the_nanosecond(double us) {
  return std::isfinite(us) ? std::round(us * 1e3) / 1e3 : us;
}

void keep_samples(const std::vector<engine::Sample>& samples, Trial& trial) {
  for (const engine::Sample& sample : samples) {
    trial.wall_us.push_back(to_the_nanosecond(sample.wall_us));
  }
  if (trial.wall_us.empty()) {
    throw CheckFailure("the engine returned no sample");
  }
  if (!std::all_of(trial.wall_us.begin(), trial.wall_us.end(),
                   [](double wall) { return std::isfinite(wall) && wall > 0; })) {
    throw CheckFailure("the engine returned a wall time that is no positive number");
  }
  const std::size_t ranks = samples.front().rank_wall_us.size();
  trial.rank_wall_us.resize(ranks);
  for (const engine::Sample& sample : samples) {
    for (std::size_t rank = 0; rank < ranks && rank < sample.rank_wall_us.size(); ++rank) {
      trial.rank_wall_us[rank].push_back(to_the_nanosecond(sample.rank_wall_us[rank]));
    }
  }
  if (std::any_of(samples.begin(), samples.end(),
                  [](const engine::Sample& sample) { return sample.sm_clock_mhz > 0; })) {
    for (const engine::Sample& sample : samples) {
      trial.sm_clock_mhz.push_back(std::round(sample.sm_clock_mhz));
    }
  }
}

void measure(const Bench& bench, Trial& trial, int samples, int deadline_ms) {
  engine::RunRequest request;
  request.problem = bench.problem;
  request.config = trial.config;
  request.warmup = bench.measure.warmup;
  request.min_samples = samples > 0 ? samples : bench.measure.min_samples;
  request.target_rel_ci =
      samples > 0 ? std::numeric_limits<double>::infinity() : bench.measure.target_rel_ci;
  request.max_seconds = bench.measure.max_seconds;
  request.rest_ms = bench.measure.rest_ms;
  // Of a simulation with jitter every measurement draws other numbers.
  request.seed = bench.measure.seed;
  if (bench.engine->name() == "sim") {
    request.seed += 1'000'003 * static_cast<std::uint64_t>(trial.visit) +
                    7919 * static_cast<std::uint64_t>(trial.kind);
  }
  request.timeline = static_cast<bool>(bench.analyse);
  request.command = bench.command;
  if (deadline_ms > 0) {
    request.deadline_ms = deadline_ms;
  }
  const engine::RunResult result = bench.engine->run(request);

  trial.source = result.source;
  keep_samples(result.samples, trial);
  set_medians(trial);
  if (bench.analyse && result.timeline) {
    bench.analyse(*result.timeline, trial);
  }
}

// What a device's runtime throws is known here by its words only: the sweep knows no engine.
Verdict verdict_of(const std::string& message) {
  for (const char* const words : {"cudaErrorMemoryAllocation", "out of memory"}) {
    if (message.find(words) != std::string::npos) {
      return Verdict::out_of_memory;
    }
  }
  return message.find("cudaError") != std::string::npos ? Verdict::launch_failure
                                                        : Verdict::aborted;
}

class InProcess : public Executor {
 public:
  explicit InProcess(Bench bench) : bench_(std::move(bench)) {}

  Trial execute(Trial planned, int samples) override {
    return run_trial(bench_, std::move(planned), samples);
  }

 private:
  Bench bench_;
};

}  // namespace

Trial failed_trial(const Trial& planned, Verdict verdict, const std::string& reason) {
  Trial failed;
  failed.id = planned.id;
  failed.kind = planned.kind;
  failed.label = planned.label;
  failed.visit = planned.visit;
  failed.config = planned.config;
  failed.source = planned.source;
  failed.verdict = verdict;
  failed.reason = reason;
  return failed;
}

Trial run_trial(const Bench& bench, Trial planned, int samples, int deadline_ms) {
  const auto begin = std::chrono::steady_clock::now();
  Trial trial = std::move(planned);
  const std::string rule = why_illegal(*bench.problem, trial.config, bench.engine->device());
  if (!rule.empty()) {
    trial = failed_trial(trial, Verdict::illegal, rule);
  } else {
    try {
      measure(bench, trial, samples, deadline_ms);
    } catch (const InputError& error) {
      trial = failed_trial(trial, Verdict::illegal, error.what());
    } catch (const CheckFailure& error) {
      const bool wrong = error.kind() == CheckFailure::Kind::wrong_output;
      trial = failed_trial(trial, wrong ? Verdict::wrong_output : Verdict::aborted, error.what());
    } catch (const std::bad_alloc&) {
      trial = failed_trial(trial, Verdict::out_of_memory, "the host's memory did not suffice");
    } catch (const std::exception& error) {
      trial = failed_trial(trial, verdict_of(error.what()), error.what());
    } catch (...) {
      trial = failed_trial(trial, Verdict::aborted, "an exception of unknown type");
    }
  }
  trial.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return trial;
}

std::unique_ptr<Executor> make_in_process(Bench bench) {
  return std::make_unique<InProcess>(std::move(bench));
}

}  // namespace fusescope::sweep
