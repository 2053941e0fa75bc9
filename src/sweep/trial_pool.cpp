#include "sweep/trial_pool.hpp"

#include <algorithm>
#include <numeric>
#include <thread>
#include <utility>

#include "sweep/summary.hpp"

namespace fusescope::sweep {

TrialPool::TrialPool(Source source, const Measure& measure, Executor& executor, TrialLog& log,
                     const RunnerOptions& options)
    : source_(std::move(source)),
      executor_(executor),
      log_(log),
      options_(options),
      guard_(measure),
      free_slots_(options.jobs),
      replaced_(executor.replaced()) {
  for (const Trial& trial : log.trials()) {
    guard_.learn(trial);
    base_id_ += trial.kind == TrialKind::base ? 1 : 0;
  }
}

Outcome TrialPool::run(Progress progress, double budget_seconds) {
  progress_ = progress;
  budget_seconds_ = budget_seconds;
  if (progress.best != nullptr) {
    best_ = *progress.best;
  }
  begin_ = std::chrono::steady_clock::now();
  {
    // One thread more than trials at a time: a slot is free again once its trial has ended, and the
    // next trial runs while the last one is written to the disk.
    std::vector<std::jthread> threads;
    for (int i = 0; i < options_.jobs; ++i) {
      threads.emplace_back([this] { work(); });
    }
    work();
  }
  if (failure_) {
    std::rethrow_exception(failure_);
  }
  outcome_.seconds = elapsed();
  outcome_.engine_seconds /= options_.jobs;
  outcome_.sample_seconds /= options_.jobs;
  return outcome_;
}

void TrialPool::work() {
  try {
    while (true) {
      wait_for_slot();
      std::optional<Planned> planned = take();
      if (!planned) {
        give_slot();
        return;
      }
      Trial trial = executor_.execute(std::move(planned->trial), planned->samples);
      give_slot();
      finish(std::move(trial), planned->ticket);
    }
  } catch (...) {
    const std::lock_guard lock(mutex_);
    failure_ = std::current_exception();
    over_ = true;
    ++free_slots_;
    changed_.notify_all();
  }
}

void TrialPool::wait_for_slot() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return free_slots_ > 0; });
  --free_slots_;
}

void TrialPool::give_slot() {
  const std::lock_guard lock(mutex_);
  ++free_slots_;
  changed_.notify_all();
}

std::optional<Planned> TrialPool::take() {
  std::unique_lock lock(mutex_);
  while (!over_) {
    if (!pending_) {
      pending_ = source_.next();
    }
    if (!pending_ && in_flight_ > 0) {
      changed_.wait(lock);  // for a trial to end, which may lead to others
      continue;
    }
    const std::optional<Ending> ending = ended();
    if (ending) {
      outcome_.ending = *ending;
      over_ = true;
      changed_.notify_all();
      break;
    }
    ++in_flight_;
    if (std::optional<Planned> base = base_measurement(); base) {
      return with_ticket(std::move(base));
    }
    return with_ticket(std::exchange(pending_, std::nullopt));
  }
  return std::nullopt;
}

std::optional<Planned> TrialPool::with_ticket(std::optional<Planned> planned) {
  planned->ticket = taken_++;
  return planned;
}

// Whether the run ends before the pending trial, if there is one.
std::optional<Ending> TrialPool::ended() const {
  if (!pending_) {
    return source_.over().value_or(Ending::complete);
  }
  if (options_.stop != nullptr && options_.stop->load()) {
    return Ending::stopped;
  }
  if (budget_seconds_ > 0 && elapsed() >= budget_seconds_) {
    return Ending::seconds_spent;
  }
  return std::nullopt;
}

std::optional<Planned> TrialPool::base_measurement() {
  if (options_.base_every == 0) {
    return std::nullopt;
  }
  if (const int replaced = executor_.replaced(); replaced != replaced_) {
    replaced_ = replaced;
    base_is_due_ = true;
  }
  if (!base_is_due_ && since_base_ < options_.base_every) {
    return std::nullopt;
  }
  base_is_due_ = false;
  since_base_ = 0;
  Planned planned;
  planned.trial.kind = TrialKind::base;
  planned.trial.id = base_id_;
  planned.trial.visit = base_id_++;
  planned.trial.config = options_.base;
  return planned;
}

void TrialPool::finish(Trial trial, long long ticket) {
  std::unique_lock lock(mutex_);
  if (options_.jobs == 1) {  // one at a time: the log is in their order
    changed_.wait(lock, [&] { return finished_ == ticket || failure_ != nullptr; });
  }
  guard_.judge(trial);
  log_.append(trial);
  outcome_.engine_seconds += trial.seconds;
  outcome_.sample_seconds += std::accumulate(trial.wall_us.begin(), trial.wall_us.end(), 0.0) / 1e6;
  if (trial.kind == TrialKind::base) {
    ++outcome_.base_ran;
  } else {
    count(trial);
  }
  --in_flight_;
  ++finished_;
  changed_.notify_all();
}

void TrialPool::count(const Trial& trial) {
  ++outcome_.ran;
  ++since_base_;
  source_.tell(trial);
  if (trial.verdict == Verdict::ok && trial.kind == TrialKind::search &&
      (!best_ || is_better(trial, *best_))) {
    best_ = trial;
  }
  ++progress_.done;
  progress_.failures += trial.verdict == Verdict::ok ? 0 : 1;
  if (options_.progress) {
    report(trial);
  }
}

void TrialPool::report(const Trial& trial) {
  progress_.last = &trial;
  progress_.best = best_ ? &*best_ : nullptr;
  progress_.seconds = elapsed();
  progress_.trials_per_second = static_cast<double>(outcome_.ran) / progress_.seconds;
  const double left = static_cast<double>(std::max(0LL, progress_.planned - progress_.done));
  progress_.seconds_left = left / progress_.trials_per_second;
  options_.progress(progress_);
}

double TrialPool::elapsed() const {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_).count();
}

}  // namespace fusescope::sweep
