#pragma once
// The event core: simulated time, a queue of steps, and the coroutine type that blocks are written in.
// A block runs until it awaits a time or a counter; the scheduler then runs the next step. Everything
// happens on the caller's thread. Frames come from a pool, so that a job costs no heap allocation.

#include <array>
#include <coroutine>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <utility>
#include <vector>

#include "engine/sim/step_queue.hpp"

namespace fusescope::engine::sim {

// Coroutine frames by size class. Freed frames are reused; memory goes back with the pool.
class FramePool {
 public:
  void* take(std::size_t bytes);
  static void give(void* frame) noexcept;

 private:
  static constexpr std::size_t kStep = 64;
  static constexpr std::size_t kClasses = 64;
  static constexpr std::size_t kChunk = std::size_t{1} << 17;
  struct Header {
    FramePool* pool;
    std::size_t size_class;
  };
  struct Free {
    Free* next;
  };
  std::array<Free*, kClasses> free_{};
  std::vector<std::unique_ptr<std::byte[]>> chunks_;
  std::byte* cursor_ = nullptr;
  std::size_t left_ = 0;
};

class Scheduler;

// A block, or a part of one that another awaits. It starts when it is awaited or spawned. The first
// parameter of every such coroutine has `frame_pool()`: that is where its frame comes from.
class [[nodiscard]] Task {
 public:
  struct promise_type;
  using Handle = std::coroutine_handle<promise_type>;

  struct FinalAwaiter {
    bool await_ready() const noexcept { return false; }
    std::coroutine_handle<> await_suspend(Handle self) const noexcept;
    void await_resume() const noexcept {}
  };

  struct promise_type {
    std::coroutine_handle<> awaiting;  // who goes on when this ends; none for a spawned task
    Scheduler* scheduler = nullptr;    // set for a spawned task
    std::size_t root = 0;              // its place among the scheduler's spawned tasks
    std::exception_ptr error;

    Task get_return_object() { return Task(Handle::from_promise(*this)); }
    std::suspend_always initial_suspend() const noexcept { return {}; }
    FinalAwaiter final_suspend() const noexcept { return {}; }
    void return_void() const noexcept {}
    void unhandled_exception() noexcept { error = std::current_exception(); }

    template <class First, class... Rest>
    static void* operator new(std::size_t bytes, First& first, Rest&...) {
      return first.frame_pool().take(bytes);
    }
    static void operator delete(void* frame) noexcept { FramePool::give(frame); }
  };

  explicit Task(Handle handle) : handle_(handle) {}
  Task(Task&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  Task(const Task&) = delete;
  Task& operator=(const Task&) = delete;
  Task& operator=(Task&&) = delete;
  ~Task() {
    if (handle_) {
      handle_.destroy();
    }
  }

  bool await_ready() const noexcept { return false; }
  std::coroutine_handle<> await_suspend(std::coroutine_handle<> awaiting) noexcept {
    handle_.promise().awaiting = awaiting;
    return handle_;
  }
  void await_resume() const {
    if (handle_.promise().error) {
      std::rethrow_exception(handle_.promise().error);
    }
  }

  Handle release() { return std::exchange(handle_, nullptr); }

 private:
  Handle handle_;
};

// Which pending step runs next. Without a chooser the earliest does, and among equals the one that was
// queued first: that is simulated time. With one, any pending step may run, whatever its time: a search
// through interleavings, in which times mean nothing and the protocol has to hold all the same.
class StepChooser {
 public:
  virtual ~StepChooser() = default;
  virtual std::size_t choose(std::size_t pending) = 0;  // an index below `pending`
};

class Scheduler {
 public:
  explicit Scheduler(StepChooser* chooser = nullptr) : chooser_(chooser) {}
  ~Scheduler();
  Scheduler(const Scheduler&) = delete;
  Scheduler& operator=(const Scheduler&) = delete;

  Time now() const { return now_; }
  std::uint64_t steps_run() const { return steps_run_; }
  FramePool& frame_pool() { return frames_; }

  void spawn(Task task);  // starts at the present time, after the steps already queued for it
  void wake_at(Time at, std::coroutine_handle<> who);

  struct Until {
    Scheduler& scheduler;
    Time at;
    bool await_ready() const noexcept { return at <= scheduler.now_; }
    void await_suspend(std::coroutine_handle<> who) const { scheduler.wake_at(at, who); }
    void await_resume() const noexcept {}
  };
  Until until(Time at) { return {*this, at}; }

  // Runs until no step is pending. Throws what a task threw; throws CheckFailure if tasks are left that
  // nothing will ever wake.
  void run();

 private:
  friend struct Task::FinalAwaiter;
  Step take_next();  // the seam: the one place that decides what runs next
  void retire(Task::Handle root) noexcept;

  StepChooser* chooser_;
  Time now_ = 0;
  std::uint64_t steps_run_ = 0;
  StepQueue steps_;
  std::vector<Step> bag_;  // in its place when there is a chooser
  FramePool frames_;
  std::vector<Task::Handle> roots_;
  std::exception_ptr error_;
};

}  // namespace fusescope::engine::sim
