// Inside a block: mbarriers and named barriers; and what streams wait for.
#include <fmt/format.h>

#include <algorithm>

#include "protocol/machine.hpp"
#include "protocol/thread.hpp"

namespace fusescope::protocol {

// --- mbarriers -----------------------------------------------------------------------------------

void Thread::init_mbarrier(MbarrierId id, int threads, bool loads) {
  Mbarrier& barrier = machine_.mbarrier(id);
  const int width = machine_.width_;
  barrier.threads = barrier.pending = threads;
  barrier.copies = 0;
  barrier.completed = 0;
  barrier.waiters = {};
  barrier.watcher = -1;
  barrier.copier = loads ? machine_.take_component(device_, launch_) : Component{-1};
  for (Clock* clock :
       {&barrier.open_generic, &barrier.open_async, &barrier.generic, &barrier.async}) {
    clock->clear(width);
  }
}

void Machine::complete_phase_if_full(Mbarrier& barrier) {
  if (barrier.pending > 0 || barrier.copies > 0) {
    return;
  }
  barrier.generic.join(barrier.open_generic, width_);
  barrier.async.join(barrier.open_async, width_);
  barrier.open_generic.clear(width_);
  barrier.open_async.clear(width_);
  barrier.pending = barrier.threads;
  ++barrier.completed;
  wake(barrier.waiters);
  if (barrier.watcher >= 0) {
    wake(threads_[barrier.watcher]->own_waiters_);
  }
}

void Thread::expect_copies(MbarrierId id, int copies) {
  machine_.mbarrier(id).copies += copies;
}

void Thread::arrive_on(MbarrierId id) {
  Mbarrier& barrier = machine_.mbarrier(id);
  barrier.open_generic.join(generic_, machine_.width_);
  barrier.open_async.join(async_, machine_.width_);
  if (--barrier.pending < 0) {
    machine_.report(
        FindingKind::barrier,
        fmt::format("{} arrives on an mbarrier whose phase is full", to_string(label_)));
  }
  advance();
  machine_.complete_phase_if_full(barrier);
}

void Thread::arrive(MbarrierId id, int count) {
  for (int i = 0; i < count; ++i) {
    arrive_on(id);
  }
}

void Thread::arrive_expecting(MbarrierId id, int copies) {
  machine_.mbarrier(id).copies += copies;
  arrive_on(id);
}

bool Thread::has_passed(MbarrierId id, std::uint32_t parity) const {
  return machine_.mbarrier(id).passed(parity);
}

void WaitPhase::await_suspend(std::coroutine_handle<> who) const {
  thread.handle_ = who;
  thread.blocked_ = Blocked::phase;
  thread.object_ = mbarrier;
  thread.expected_ = parity;
  thread.is_bounded_ = bounded;
  thread.machine_.block(thread, thread.machine_.mbarrier(mbarrier).waiters);
}
bool WaitPhase::await_resume() const {
  const Mbarrier& barrier = thread.machine_.mbarrier(mbarrier);
  if (thread.machine_.traces()) {
    thread.machine_.note(thread, fmt::format("mbarrier wait of parity {}{}", parity,
                                             barrier.passed(parity) ? "" : ": given up"));
  }
  if (!barrier.passed(parity)) {
    if (thread.timed_out_) {
      thread.give_up();
    }
    return false;
  }
  thread.timed_out_ = false;
  thread.generic_.join(barrier.generic, thread.machine_.width_);
  thread.async_.join(barrier.async, thread.machine_.width_);
  return true;
}

void WaitEither::await_suspend(std::coroutine_handle<> who) const {
  thread.handle_ = who;
  thread.blocked_ = Blocked::either;
  thread.either_ = {first, second};
  thread.is_bounded_ = bounded;
  for (const Phase& phase : thread.either_) {
    thread.machine_.mbarrier(phase.mbarrier).watcher = thread.index_;
  }
  thread.machine_.block(thread, thread.own_waiters_);
}
void WaitEither::await_resume() const {
  const bool is_over = thread.has_passed(first.mbarrier, first.parity) ||
                       thread.has_passed(second.mbarrier, second.parity);
  if (thread.machine_.traces()) {
    thread.machine_.note(
        thread, fmt::format("mbarrier wait of one or the other{}", is_over ? "" : ": given up"));
  }
  if (thread.timed_out_ && !is_over) {
    thread.give_up();
  }
  thread.timed_out_ = false;
}

// --- named barriers ------------------------------------------------------------------------------

Meeting Thread::meet(BarrierId id, int threads, int count, bool vote) {
  NamedBarrier& barrier = machine_.barrier(id);
  const int width = machine_.width_;
  if (machine_.traces()) {
    machine_.note(*this, fmt::format("bar.sync of {}: {} + {}", count, barrier.arrived, threads));
  }
  if (barrier.arrived == 0) {
    barrier.expected = count;
    barrier.first = label_id_;
  } else if (barrier.expected != count) {
    machine_.report(FindingKind::barrier,
                    fmt::format("{} meets {} threads on a named barrier on which {} meets {}",
                                to_string(label_), count,
                                to_string(machine_.labels_[barrier.first]), barrier.expected));
  }
  barrier.open_generic.join(generic_, width);
  barrier.open_async.join(async_, width);
  barrier.arrived += threads;
  barrier.open_vote = barrier.open_vote && vote;
  advance();
  const Meeting meeting{*this, id, barrier.completed + 1};
  if (barrier.arrived >= barrier.expected) {
    if (barrier.arrived > barrier.expected) {
      machine_.report(FindingKind::barrier,
                      fmt::format("{} threads meet on a named barrier of {}: {} is one too many",
                                  barrier.arrived, barrier.expected, to_string(label_)));
    }
    barrier.generic.join(barrier.open_generic, width);
    barrier.async.join(barrier.open_async, width);
    barrier.open_generic.clear(width);
    barrier.open_async.clear(width);
    barrier.arrived = 0;
    barrier.vote = barrier.open_vote;
    barrier.open_vote = true;
    ++barrier.completed;
    machine_.wake(barrier.waiters);
  }
  return meeting;
}

void Meeting::await_suspend(std::coroutine_handle<> who) const {
  thread.handle_ = who;
  thread.blocked_ = Blocked::meeting;
  thread.object_ = barrier;
  thread.expected_ = generation;
  thread.is_bounded_ = false;
  thread.machine_.block(thread, thread.machine_.barrier(barrier).waiters);
}
bool Meeting::await_resume() const {
  const NamedBarrier& met = thread.machine_.barrier(barrier);
  thread.generic_.join(met.generic, thread.machine_.width_);
  thread.async_.join(met.async, thread.machine_.width_);
  return met.vote;
}

// --- streams -------------------------------------------------------------------------------------

void WaitLaunch::await_suspend(std::coroutine_handle<> who) const {
  thread.handle_ = who;
  thread.blocked_ = Blocked::launch;
  thread.object_ = launch;
  thread.is_bounded_ = false;
  thread.machine_.block(thread, thread.machine_.launches_[launch]->waiters);
}
void WaitLaunch::await_resume() const {
  Machine& machine = thread.machine_;
  Launch& ended = *machine.launches_[launch];
  thread.generic_.join(ended.end, machine.width_);
  if (gives_back) {
    machine.give_back(launch, thread.device_);
  }
}

void TakeSms::await_suspend(std::coroutine_handle<> who) const {
  thread.handle_ = who;
  thread.blocked_ = Blocked::sms;
  thread.expected_ = static_cast<std::uint64_t>(count);
  thread.is_bounded_ = false;
  thread.machine_.block(thread, thread.machine_.sms_waiters_[thread.device_]);
}
void TakeSms::await_resume() const {
  thread.machine_.free_sms_[thread.device_] -= count;
}

void Thread::learn(const Thread& other) {
  generic_.join(other.generic_, machine_.width_);
}

void Machine::tell_everything(Thread& stream) const {
  std::copy_n(ticks_.begin(), width_, stream.generic_.at.begin());
}

}  // namespace fusescope::protocol
