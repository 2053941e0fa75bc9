#pragma once
// What blocks wait on and count with, as the device has it: counters that open a gate, a dispenser of
// jobs, the election of the last push, and a rendezvous of all ranks. Each checks its own protocol and
// throws CheckFailure where the device would silently go wrong.

#include <cstdint>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "engine/sim/scheduler.hpp"

namespace fusescope::engine::sim {

// A counter that many add to and that opens, once, when it is full. Arrival counters (seeded with
// slack, full at 128), done counters (full at the N tiles of a row block), watermarks (full at 1) and
// the last block of a kernel are all of this kind.
class FillCounter {
 public:
  FillCounter(int seed, int full, const char* what, int id = -1)
      : value_(seed), full_(full), what_(what), id_(id) {
    if (seed < 0 || seed > full) {
      fail("is seeded with " + std::to_string(seed));
    }
  }

  int value() const { return value_; }
  bool is_open() const { return value_ == full_; }
  Time opened_at() const { return opened_at_; }  // 0 when the seed alone opened it

  // Adds one. Those who wait see it `seen_after` later, when their next poll returns.
  void add(Scheduler& scheduler, Time seen_after) {
    if (value_ >= full_) {
      fail("overshoots");
    }
    if (++value_ < full_) {
      return;
    }
    opened_at_ = scheduler.now();
    for (Opened* waiter = first_; waiter != nullptr;) {
      Opened* next = waiter->next;  // the waiter's frame may be gone once it ran
      scheduler.wake_at(scheduler.now() + seen_after, waiter->who);
      waiter = next;
    }
    first_ = last_ = nullptr;
  }

  struct Opened {
    FillCounter& counter;
    Opened* next = nullptr;
    std::coroutine_handle<> who;
    bool await_ready() const noexcept { return counter.is_open(); }
    void await_suspend(std::coroutine_handle<> waiter) noexcept {
      who = waiter;
      (counter.last_ == nullptr ? counter.first_ : counter.last_->next) = this;
      counter.last_ = this;
    }
    void await_resume() const noexcept {}
  };
  Opened opened() { return {*this, nullptr, {}}; }

 private:
  [[noreturn]] void fail(const std::string& how) const {
    throw CheckFailure(std::string(what_) + " " + std::to_string(id_) + " " + how + " beyond " +
                       std::to_string(full_));
  }

  int value_;
  int full_;
  const char* what_;
  int id_;
  Time opened_at_ = 0;
  Opened* first_ = nullptr;  // in the order in which they came, for determinism
  Opened* last_ = nullptr;
};

// One atomic counter from which resident blocks claim jobs. Every job is claimed exactly once.
class Dispenser {
 public:
  explicit Dispenser(int jobs) : claimed_(static_cast<std::size_t>(jobs), 0) {}

  int jobs() const { return static_cast<int>(claimed_.size()); }
  int claim() { return next_++; }  // at or beyond jobs(): none left

  // The claimer takes the token that its place in the job order stands for: the check that no two do.
  void take(int token) {
    if (claimed_.at(static_cast<std::size_t>(token))++ != 0) {
      throw CheckFailure("the job of token " + std::to_string(token) + " is claimed twice");
    }
    ++taken_;
  }
  int taken() const { return taken_; }

 private:
  int next_ = 0;
  int taken_ = 0;
  std::vector<std::uint8_t> claimed_;  // [token]
};

// Counts this rank's completed pushes per receiver and chunk. The push that makes a count full is
// elected, and it alone raises the receiver's watermark: one writer per flag.
class Election {
 public:
  Election(int receivers, int chunks, int tokens_per_receiver)
      : chunks_(chunks), counts_(static_cast<std::size_t>(receivers) * chunks, 0) {
    for (int chunk = 0; chunk < chunks; ++chunk) {
      const auto edge = [&](int at) {
        return static_cast<int>((static_cast<long long>(at) * tokens_per_receiver + chunks - 1) /
                                chunks);
      };
      full_.push_back(edge(chunk + 1) - edge(chunk));
    }
  }

  bool counted_last(int receiver, int chunk) {
    int& count = counts_.at(static_cast<std::size_t>(receiver) * chunks_ + chunk);
    const int full = full_[static_cast<std::size_t>(chunk)];
    if (++count > full) {
      throw CheckFailure("pushes to rank " + std::to_string(receiver) + " chunk " +
                         std::to_string(chunk) + " overshoot beyond " + std::to_string(full));
    }
    return count == full;
  }

 private:
  int chunks_;
  std::vector<int> full_;    // [chunk]
  std::vector<int> counts_;  // [receiver, chunk]
};

// A meeting of all ranks: everyone leaves `latency` after the last one came.
class Rendezvous {
 public:
  Rendezvous(Scheduler& scheduler, int ranks, Time latency)
      : scheduler_(&scheduler), ranks_(ranks), latency_(latency) {}

  bool await_ready() const noexcept { return false; }
  void await_suspend(std::coroutine_handle<> who) {
    waiting_.push_back(who);
    if (static_cast<int>(waiting_.size()) > ranks_) {
      throw CheckFailure("a rank enters the same barrier twice");
    }
    if (static_cast<int>(waiting_.size()) == ranks_) {
      for (const std::coroutine_handle<> waiter : waiting_) {
        scheduler_->wake_at(scheduler_->now() + latency_, waiter);
      }
    }
  }
  void await_resume() const noexcept {}

 private:
  Scheduler* scheduler_;
  int ranks_;
  Time latency_;
  std::vector<std::coroutine_handle<>> waiting_;
};

}  // namespace fusescope::engine::sim
