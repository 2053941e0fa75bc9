#pragma once
// Trials in worker processes: whatever a config does to its process (hang, segfault, exit, exhaust
// memory, leave the device's context unusable) costs that trial and nothing else. A worker that is
// lost is replaced by the next trial that needs it.

#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "sweep/executor.hpp"
#include "sweep/worker_process.hpp"
#include "sweep/worker_serve.hpp"

namespace fusescope::sweep {

// The check takes the move of a Json for one that may throw. NOLINTNEXTLINE(bugprone-exception-escape)
struct WorkerOptions {
  std::vector<std::string> command;  // a program that calls serve_worker on kWorkerSocket
  Json open;                         // what each worker is opened with
  int workers = 1;
  double max_seconds = 3;   // measure.max_seconds: a trial may sample for that long
  double rest_seconds = 0;  // what a trial may rest beside: before warm-ups and the last sample
  double keep_rest_seconds = 0;  // and keep() more than that: before iterations in turns
  double deadline_seconds = 0;   // of a trial; 0: max_seconds, rest_seconds and 20 times what the
                                 // baseline took (the base config, else the first that ran), at
                                 // least 2 s
  double startup_seconds = 180;  // allowed on top for a worker to open, and for its first trial
  double silence_seconds = 20;   // without a heartbeat, after its first, a worker counts as hung
};

class IsolatedExecutor : public Executor {
 public:
  // Starts the first worker and waits until it is open. Throws what it was refused with (InputError),
  // or CheckFailure when it does not start.
  explicit IsolatedExecutor(WorkerOptions options);
  ~IsolatedExecutor() override;

  const WorkerHello& hello() const { return hello_; }
  // Of the measuring rules: known only after the first worker said what engine it has.
  void set_workers(int workers);

  // Throws CheckFailure only when no worker can be started any more.
  Trial execute(Trial planned, int samples) override;
  int replaced() const override;
  // Has a worker run the config with its timeline and write it into `folder`. Throws CheckFailure.
  void keep(const Config& config, const std::string& folder);

 private:
  struct Worker;
  struct Answer;

  std::unique_ptr<Worker> open_worker();
  Answer ask(Worker& worker, const std::string& order, double seconds) const;
  std::unique_ptr<Worker> take_worker();
  void give_back(std::unique_ptr<Worker> worker);
  double allowed_seconds(const Worker& worker) const;
  int device_deadline_ms() const;
  void learn(const Trial& trial, bool fresh);

  WorkerOptions options_;
  WorkerHello hello_;         // the first worker's: later ones must meet the same device
  mutable std::mutex mutex_;  // guards what follows
  std::condition_variable changed_;
  std::vector<std::unique_ptr<Worker>> idle_;
  int busy_ = 0;
  int replaced_ = 0;
  double baseline_seconds_ = 0;  // 0: none yet
  double baseline_wall_us_ = 0;
  int baseline_rank_ = 0;  // how good a baseline it is
};

}  // namespace fusescope::sweep
