#include "sweep/runner.hpp"

#include <algorithm>
#include <chrono>
#include <exception>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <thread>
#include <utility>

#include "sweep/strategy.hpp"
#include "sweep/summary.hpp"

namespace fusescope::sweep {
namespace {

using Clock = std::chrono::steady_clock;

// What is to be run. Both functions are called by one thread at a time.
struct Source {
  std::function<std::optional<Trial>()> next;  // the next trial that the log lacks
  std::function<void(const Trial&)> tell;      // hears of each trial that ended
};

// The threads of one run and what they share.
class Pool {
 public:
  Pool(Source source, Executor& executor, TrialLog& log, const RunnerOptions& options)
      : source_(std::move(source)), executor_(executor), log_(log), options_(options) {}

  // `progress` brings the counts of what the log holds already.
  Outcome run(Progress progress, double budget_seconds) {
    progress_ = progress;
    budget_seconds_ = budget_seconds;
    if (progress.best != nullptr) {
      best_ = *progress.best;
    }
    begin_ = Clock::now();
    {
      std::vector<std::jthread> threads;
      for (int i = 1; i < options_.jobs; ++i) {
        threads.emplace_back([this] { work(); });
      }
      work();
    }
    if (failure_) {
      std::rethrow_exception(failure_);
    }
    return outcome_;
  }

 private:
  void work() {
    try {
      while (std::optional<Trial> planned = take()) {
        finish(executor_.execute(std::move(*planned)));
      }
    } catch (...) {
      const std::lock_guard lock(mutex_);
      failure_ = std::current_exception();
    }
  }

  std::optional<Trial> take() {
    const std::lock_guard lock(mutex_);
    if (failure_ || outcome_.ending != Ending::complete) {
      return std::nullopt;
    }
    std::optional<Trial> planned = source_.next();
    if (!planned) {
      return std::nullopt;
    }
    if (options_.stop != nullptr && options_.stop->load()) {
      outcome_.ending = Ending::stopped;
      return std::nullopt;
    }
    if (budget_seconds_ > 0 && elapsed() >= budget_seconds_) {
      outcome_.ending = Ending::budget_spent;
      return std::nullopt;
    }
    return planned;
  }

  void finish(const Trial& trial) {
    const std::lock_guard lock(mutex_);
    log_.append(trial);
    ++outcome_.ran;
    source_.tell(trial);
    if (trial.verdict == Verdict::ok && trial.label.empty() &&
        (!best_ || is_better(trial, *best_))) {
      best_ = trial;
    }
    ++progress_.done;
    progress_.failures += trial.verdict == Verdict::ok ? 0 : 1;
    if (options_.progress) {
      report(trial);
    }
  }

  void report(const Trial& trial) {
    const double left = static_cast<double>(std::max(0LL, progress_.planned - progress_.done));
    progress_.last = &trial;
    progress_.best = best_ ? &*best_ : nullptr;
    progress_.seconds = elapsed();
    progress_.seconds_left = progress_.seconds / static_cast<double>(outcome_.ran) * left;
    options_.progress(progress_);
  }

  double elapsed() const { return std::chrono::duration<double>(Clock::now() - begin_).count(); }

  Source source_;
  Executor& executor_;
  TrialLog& log_;
  const RunnerOptions& options_;

  std::mutex mutex_;  // guards what follows
  Clock::time_point begin_;
  double budget_seconds_ = 0;
  Outcome outcome_;
  Progress progress_;
  std::optional<Trial> best_;
  std::exception_ptr failure_;
};

}  // namespace

Outcome run_search(const SweepConfig& config, const DeviceLimits& device, Executor& executor,
                   TrialLog& log, const RunnerOptions& options) {
  const SearchSpace space(config, device);
  const std::unique_ptr<Strategy> strategy = make_strategy(config.search, space);
  const long long allowed = count_constraints(space, config, device).allowed;

  std::map<std::uint64_t, const Trial*> logged;
  const std::vector<Trial> before = log.trials();
  Progress progress;
  progress.planned = config.search.trials > 0 ? std::min(config.search.trials, allowed) : allowed;
  for (const Trial& trial : before) {
    if (trial.label.empty()) {
      logged[hash(trial.config)] = &trial;
      progress.failures += trial.verdict == Verdict::ok ? 0 : 1;
    }
  }
  const std::optional<Trial> best = best_trial(before);
  progress.best = best ? &*best : nullptr;
  progress.done = static_cast<long long>(logged.size());

  long long proposed = 0;
  long long found = 0;
  Source source;
  source.next = [&]() -> std::optional<Trial> {
    while (proposed < progress.planned) {
      const std::optional<Config> proposal = strategy->next();
      if (!proposal) {
        return std::nullopt;
      }
      Trial planned;
      planned.id = static_cast<int>(proposed++);
      planned.config = *proposal;
      const auto in_log = logged.find(hash(planned.config));
      if (in_log == logged.end()) {
        return planned;
      }
      ++found;
      strategy->tell(*in_log->second);
    }
    return std::nullopt;
  };
  source.tell = [&](const Trial& trial) { strategy->tell(trial); };

  Outcome outcome =
      Pool(std::move(source), executor, log, options).run(progress, config.search.seconds);
  outcome.found = found;
  outcome.planned = progress.planned;
  return outcome;
}

Outcome run_labelled(const std::vector<Labelled>& configs, Executor& executor, TrialLog& log,
                     const RunnerOptions& options) {
  std::set<std::pair<std::string, std::uint64_t>> logged;
  for (const Trial& trial : log.trials()) {
    logged.emplace(trial.label, hash(trial.config));
  }
  std::vector<Trial> missing;
  for (std::size_t i = 0; i < configs.size(); ++i) {
    if (!logged.contains({configs[i].label, hash(configs[i].config)})) {
      Trial planned;
      planned.id = static_cast<int>(i);
      planned.label = configs[i].label;
      planned.config = configs[i].config;
      missing.push_back(std::move(planned));
    }
  }

  std::size_t position = 0;
  Source source;
  source.next = [&]() -> std::optional<Trial> {
    return position < missing.size() ? std::optional(missing[position++]) : std::nullopt;
  };
  source.tell = [](const Trial&) {};
  Progress progress;
  progress.planned = static_cast<long long>(configs.size());
  progress.done = static_cast<long long>(configs.size() - missing.size());
  Outcome outcome = Pool(std::move(source), executor, log, options).run(progress, 0);
  outcome.found = progress.done;
  outcome.planned = progress.planned;
  return outcome;
}

}  // namespace fusescope::sweep
