#include "engine/cuda/launch_threads.hpp"

#include <utility>

namespace fusescope::engine::cuda {

LaunchThreads::LaunchThreads(int threads, std::function<void(int)> enter)
    : enter_(std::move(enter)), errors_(static_cast<std::size_t>(threads)) {
  for (int i = 0; i < threads; ++i) {
    threads_.emplace_back([this, i] { serve(i); });
  }
}

LaunchThreads::~LaunchThreads() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  for (std::thread& thread : threads_) {
    thread.join();
  }
}

void LaunchThreads::run(const std::function<void(int)>& work) {
  std::unique_lock lock(mutex_);
  work_ = &work;
  running_ = static_cast<int>(threads_.size());
  ++round_;
  changed_.notify_all();
  changed_.wait(lock, [this] { return running_ == 0; });
  work_ = nullptr;
  for (std::exception_ptr& error : errors_) {
    if (error) {
      std::rethrow_exception(std::exchange(error, nullptr));
    }
  }
}

void LaunchThreads::serve(int index) {
  std::exception_ptr broken;
  try {
    enter_(index);
  } catch (...) {
    broken = std::current_exception();
  }
  std::unique_lock lock(mutex_);
  for (long long seen = 0;;) {
    changed_.wait(lock, [&] { return stopping_ || round_ != seen; });
    if (stopping_) {
      return;
    }
    seen = round_;
    const std::function<void(int)>* work = work_;
    lock.unlock();
    std::exception_ptr error = broken;
    if (!error) {
      try {
        (*work)(index);
      } catch (...) {
        error = std::current_exception();
      }
    }
    lock.lock();
    errors_[static_cast<std::size_t>(index)] = error;
    if (--running_ == 0) {
      changed_.notify_all();
    }
  }
}

}  // namespace fusescope::engine::cuda
