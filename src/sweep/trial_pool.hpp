#pragma once
// Inside the sweep library: the threads that run a sweep's trials, and what they share.

#include <chrono>
#include <condition_variable>
#include <exception>
#include <functional>
#include <mutex>
#include <optional>

#include "sweep/runner.hpp"
#include "sweep/timing_guard.hpp"

namespace fusescope::sweep {

struct Planned {
  Trial trial;
  int samples = 0;
  long long ticket = 0;  // place in the order of taking
};

// What is to be run. All functions are called by one thread at a time.
struct Source {
  // The next trial that the log lacks; nothing while there is none until another has been told, or
  // at the end.
  std::function<std::optional<Planned>()> next;
  std::function<void(const Trial&)> tell;  // hears of each trial that ended, base measurements not
  std::function<std::optional<Ending>()> over;  // the budget that ended it, once next() has nothing
};

class TrialPool {
 public:
  TrialPool(Source source, const Measure& measure, Executor& executor, TrialLog& log,
            const RunnerOptions& options);

  // `progress` brings the counts of what the log holds already.
  Outcome run(Progress progress, double budget_seconds);

 private:
  void work();
  std::optional<Planned> take();
  std::optional<Planned> with_ticket(std::optional<Planned> planned);
  std::optional<Ending> ended() const;
  std::optional<Planned> base_measurement();
  void finish(Trial trial, long long ticket);
  void count(const Trial& trial);
  void report(const Trial& trial);
  void wait_for_slot();
  void give_slot();
  double elapsed() const;

  Source source_;
  Executor& executor_;
  TrialLog& log_;
  const RunnerOptions& options_;

  std::mutex mutex_;  // guards what follows
  std::condition_variable changed_;
  std::chrono::steady_clock::time_point begin_;
  double budget_seconds_ = 0;
  Outcome outcome_;
  Progress progress_;
  std::optional<Trial> best_;
  TimingGuard guard_;
  std::exception_ptr failure_;
  std::optional<Planned> pending_;
  bool over_ = false;
  int free_slots_ = 1;
  int in_flight_ = 0;
  long long taken_ = 0;
  long long finished_ = 0;
  int base_id_ = 0;
  int since_base_ = 0;
  bool base_is_due_ = true;  // conditions may have changed since the log was written
  int replaced_ = 0;
};

}  // namespace fusescope::sweep
