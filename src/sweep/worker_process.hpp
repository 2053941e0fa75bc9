#pragma once
// A worker process as the sweep that started it sees it: a program, a channel to it, and what it said
// on stdout and stderr.

#include <sys/types.h>

#include <memory>
#include <string>
#include <vector>

#include "sweep/worker_channel.hpp"

namespace fusescope::sweep {

class WorkerProcess {
 public:
  // Starts `command` (a program's path and its arguments; the channel's descriptor is kWorkerSocket
  // there). Throws CheckFailure when that fails.
  explicit WorkerProcess(const std::vector<std::string>& command);
  ~WorkerProcess();  // kills it if it is still there
  WorkerProcess(const WorkerProcess&) = delete;
  WorkerProcess& operator=(const WorkerProcess&) = delete;

  pid_t pid() const { return pid_; }
  WorkerChannel& channel() { return *channel_; }

  // Waits for the process to end, after `kill` by SIGKILL, and says how: "killed by signal 11
  // (Segmentation fault); it said: ...".
  std::string end(bool kill);

 private:
  std::string last_words() const;

  pid_t pid_ = -1;
  bool ended_ = false;
  int said_ = -1;  // a file in memory: the process' stdout and stderr
  std::unique_ptr<WorkerChannel> channel_;
};

inline constexpr int kWorkerSocket = 3;  // the descriptor of the channel in the worker

}  // namespace fusescope::sweep
