#pragma once
// One host thread per device: each keeps its device current and enqueues that device's work, so that
// no device's launches wait behind another's. It knows no CUDA: what makes a device current is handed in.

#include <condition_variable>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace fusescope::engine::cuda {

class LaunchThreads {
 public:
  // `enter(i)` runs first on the i-th thread, once; what it throws, that thread's part of every run throws.
  LaunchThreads(int threads, std::function<void(int)> enter);
  ~LaunchThreads();
  LaunchThreads(const LaunchThreads&) = delete;
  LaunchThreads& operator=(const LaunchThreads&) = delete;

  // Runs `work(i)` on the i-th thread, for all of them at once; returns when all have ended. Throws what the
  // first of them (by index) threw.
  void run(const std::function<void(int)>& work);

 private:
  void serve(int index);

  std::function<void(int)> enter_;
  std::mutex mutex_;
  std::condition_variable changed_;
  const std::function<void(int)>* work_ = nullptr;
  long long round_ = 0;
  int running_ = 0;
  bool stopping_ = false;
  std::vector<std::exception_ptr> errors_;
  std::vector<std::thread> threads_;
};

}  // namespace fusescope::engine::cuda
