// The machine's loop: who is ready, who waits, who wakes, and what it means when nobody can go on.
#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

#include "protocol/machine.hpp"

namespace fusescope::protocol {
namespace {

// Far above any schedule of the small problems: a protocol that goes on for ever.
constexpr std::uint64_t kMostSteps = 400'000;

}  // namespace

void Machine::make_ready(std::int32_t index) {
  Thread& thread = *threads_[index];
  if (thread.ready_at_ >= 0 || is_frozen(thread.rank())) {
    return;
  }
  thread.ready_at_ = static_cast<std::int32_t>(ready_.size());
  ready_.push_back(index);
}

void Machine::unready(std::int32_t place) {
  const std::int32_t moved = ready_.back();
  ready_[place] = moved;
  ready_.pop_back();
  if (place < static_cast<std::int32_t>(ready_.size())) {
    (moved >= 0 ? threads_[moved]->ready_at_ : copies_[~moved]->ready_at) = place;
  }
}

void Machine::block(Thread& thread, Waiters& waiters) {
  if (can_go_on(thread)) {
    make_ready(thread.index_);
    return;
  }
  thread.next_waiter_ = waiters.first;
  thread.waiting_in_ = &waiters;
  waiters.first = thread.index_;
  if (thread.is_bounded_ && timeouts_ && !is_frozen(thread.rank())) {
    thread.bounded_at_ = static_cast<std::int32_t>(bounded_.size());
    bounded_.push_back(thread.index_);
  }
}

void Machine::leave_bounded(Thread& thread) {
  if (thread.bounded_at_ < 0) {
    return;
  }
  const std::int32_t moved = bounded_.back();
  bounded_[thread.bounded_at_] = moved;
  threads_[moved]->bounded_at_ = thread.bounded_at_;
  bounded_.pop_back();
  thread.bounded_at_ = -1;
}

bool Machine::can_go_on(const Thread& thread) const {
  if (thread.timed_out_ ||
      (thread.is_bounded_ && words_[abort_words_[thread.rank()]]->latest().value != 0)) {
    return true;
  }
  switch (thread.blocked_) {
    case Blocked::no:
      return true;
    case Blocked::word:
      return words_[thread.object_]->latest().value >= thread.expected_;
    case Blocked::phase:
      return mbarriers_[thread.object_]->passed(static_cast<std::uint32_t>(thread.expected_));
    case Blocked::either:
      return std::any_of(thread.either_.begin(), thread.either_.end(), [this](const Phase& phase) {
        return mbarriers_[phase.mbarrier]->passed(phase.parity);
      });
    case Blocked::meeting:
      return barriers_[thread.object_]->completed >= thread.expected_;
    case Blocked::stored:
      return thread.groups_done(static_cast<int>(thread.expected_), false);
    case Blocked::read:
      return thread.groups_done(static_cast<int>(thread.expected_), true);
    case Blocked::launch:
      return launches_[thread.object_]->live == 0;
    case Blocked::sms:
      return free_sms_[thread.device_] >= static_cast<int>(thread.expected_);
  }
  return true;
}

Waiters& Machine::waiters_of(Thread& thread) {
  switch (thread.blocked_) {
    case Blocked::word:
      return words_[thread.object_]->waiters;
    case Blocked::phase:
      return mbarriers_[thread.object_]->waiters;
    case Blocked::meeting:
      return barriers_[thread.object_]->waiters;
    case Blocked::launch:
      return launches_[thread.object_]->waiters;
    case Blocked::sms:
      return sms_waiters_[thread.device_];
    default:
      return thread.own_waiters_;
  }
}

// Those whose condition holds leave the list.
void Machine::wake(Waiters& waiters) {
  std::int32_t* link = &waiters.first;
  while (*link >= 0) {
    Thread& thread = *threads_[*link];
    if (!can_go_on(thread)) {
      link = &thread.next_waiter_;
      continue;
    }
    *link = thread.next_waiter_;
    thread.waiting_in_ = nullptr;
    leave_bounded(thread);
    make_ready(thread.index_);
  }
}

void Machine::wake_all_bounded(int rank) {
  for (std::size_t i = 0; i < threads_used_; ++i) {
    Thread& thread = *threads_[i];
    if (thread.alive_ && thread.waiting_in_ != nullptr && thread.is_bounded_ &&
        thread.rank() == rank) {
      wake(*thread.waiting_in_);
    }
  }
}

void Machine::resume(Thread& thread) {
  last_ = thread.index_;
  thread.handle_.resume();
  if (thread.root_.done()) {
    finish(thread);
  } else if (thread.ready_at_ < 0 && thread.waiting_in_ == nullptr && !is_frozen(thread.rank())) {
    // GCC 12 compiles some awaits inside conditions so that the awaiter is never asked.
    throw std::logic_error(to_string(thread.label_) +
                           " suspended without an operation: await into a variable, not inside a "
                           "condition");
  }
}

// --- the loop ------------------------------------------------------------------------------------

int Machine::size() const {
  return steps_ready() + static_cast<int>(bounded_.size());
}

int Machine::preferred() const {
  return last_ >= 0 && threads_[last_]->alive_ && threads_[last_]->ready_at_ >= 0
             ? threads_[last_]->ready_at_
             : 0;
}

Candidate Machine::at(int index) const {
  const bool times_out = index >= steps_ready();
  const std::int32_t id = times_out ? bounded_[index - steps_ready()] : ready_[index];
  if (id < 0) {
    const Copy& copy = *copies_[~id];
    return {&copy.label, copy.from_rank, copy.to_rank, static_cast<std::uint32_t>(id), false};
  }
  const Label& label = threads_[id]->label_;
  return {&label, label.rank, label.rank, static_cast<std::uint32_t>(id), times_out};
}

void Machine::run(Chooser& chooser) {
  chooser_ = &chooser;
  while (!finding_ && !error_) {
    if (frozen_rank_ >= 0 && steps_ == frozen_at_) {
      for (std::int32_t i = steps_ready() - 1; i >= 0; --i) {
        const std::int32_t id = ready_[i];
        const Label& label = id >= 0 ? threads_[id]->label_ : copies_[~id]->label;
        if (label.rank == frozen_rank_) {
          (id >= 0 ? threads_[id]->ready_at_ : copies_[~id]->ready_at) = -1;
          unready(i);
        }
      }
      for (std::size_t i = 0; i < threads_used_; ++i) {
        if (threads_[i]->alive_ && threads_[i]->rank() == frozen_rank_) {
          leave_bounded(*threads_[i]);
        }
      }
    }
    if (size() == 0) {
      report_stuck();
      break;
    }
    const int index = chooser.choose(*this);
    if (++steps_ == kMostSteps) {
      report(FindingKind::deadlock, "the schedule does not end");
      break;
    }
    if (index >= steps_ready()) {
      Thread& thread = *threads_[bounded_[index - steps_ready()]];
      thread.timed_out_ = true;
      wake(*thread.waiting_in_);
      unready(thread.ready_at_);
      thread.ready_at_ = -1;
      resume(thread);
      continue;
    }
    const std::int32_t id = ready_[index];
    unready(index);
    if (id < 0) {
      copies_[~id]->ready_at = -1;
      advance_copy(~id);
      continue;
    }
    Thread& thread = *threads_[id];
    thread.ready_at_ = -1;
    if (can_go_on(thread)) {
      resume(thread);
    } else {
      block(thread, waiters_of(thread));  // somebody was faster, or the word was set back
    }
  }
  if (error_) {
    std::rethrow_exception(error_);
  }
}

void Machine::report(FindingKind kind, std::string what) {
  if (!finding_) {
    finding_ = Finding{kind, std::move(what), steps_};
    if (trace_ != nullptr) {
      trace_->push_back(fmt::format("{:5}  ^ {}: {}", steps_, to_string(kind), finding_->what));
    }
  }
}

std::string Machine::waits_for(const Thread& thread) const {
  switch (thread.blocked_) {
    case Blocked::word: {
      const Word& word = *words_[thread.object_];
      return fmt::format("{}: expected {}, is {}", to_string(word.name), thread.expected_,
                         word.latest().value);
    }
    case Blocked::phase:
      return "an mbarrier of its block";
    case Blocked::either:
      return "either of two mbarriers of its block";
    case Blocked::meeting:
      return "a named barrier of its block";
    case Blocked::stored:
    case Blocked::read:
      return "its bulk copies";
    case Blocked::launch:
      return "a kernel to end";
    case Blocked::sms:
      return fmt::format("{} free SMs", thread.expected_);
    case Blocked::no:
      break;
  }
  return "nothing";
}

// Nothing can go on: fine if everything has ended that is not frozen.
void Machine::report_stuck() {
  constexpr int kShown = 10;
  std::string text;
  int left = 0;
  for (std::size_t i = 0; i < threads_used_; ++i) {
    const Thread& thread = *threads_[i];
    if (!thread.alive_ || is_frozen(thread.rank())) {
      continue;
    }
    // What a frozen rank holds of a GPU that it shares stays held.
    const bool is_starved = thread.blocked_ == Blocked::sms && frozen_rank_ >= 0 &&
                            is_frozen(frozen_rank_) &&
                            size_.device_of_rank[frozen_rank_] == thread.device_;
    // The kernel's threads say it better.
    if (thread.blocked_ == Blocked::launch || is_starved || ++left > kShown) {
      continue;
    }
    text += fmt::format("{}{} waits for {}", text.empty() ? "" : "; ", to_string(thread.label_),
                        waits_for(thread));
  }
  if (left > kShown) {
    text += fmt::format("; and {} more", left - kShown);
  }
  if (left > 0) {
    report(aborted_ ? FindingKind::hang : FindingKind::deadlock, text);
  }
}

void Machine::recover() {
  aborted_ = false;
  timeouts_ = false;
  memory_.start_checking();
}

void Machine::note(const Thread& thread, std::string what) {
  trace_->push_back(fmt::format("{:5}  {:<44} {}", steps_, to_string(thread.label_), what));
}

}  // namespace fusescope::protocol
