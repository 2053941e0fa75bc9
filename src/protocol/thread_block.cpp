// Inside a block: bulk copies, mbarriers and named barriers; and what streams wait for.
#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

#include "protocol/machine.hpp"
#include "protocol/thread.hpp"

namespace fusescope::protocol {

// --- bulk copies ---------------------------------------------------------------------------------

Copy& Machine::new_copy() {
  std::int32_t index = 0;
  if (!free_copies_.empty()) {
    index = free_copies_.back();
    free_copies_.pop_back();
  } else {
    index = static_cast<std::int32_t>(copies_used_++);
    if (copies_used_ > copies_.size()) {
      copies_.push_back(std::make_unique<Copy>());
      copies_.back()->index = index;
    }
  }
  Copy& copy = *copies_[index];
  copy.read_done = false;
  copy.ready_at = -1;
  return copy;
}

void Machine::start_copy(Copy& copy, const Thread& thread) {
  copy.thread = thread.index_;
  copy.who = thread.label_id_;
  copy.launch = thread.launch_;
  copy.label = thread.label_;
  copy.label.role = copy.mbarrier >= 0 ? Role::load : Role::store;
  copy.before.copy(thread.async_, width_);
  copy.reads_before.copy(thread.async_, width_);
  copy.reads_before.join(thread.generic_, width_);
  ++launches_[copy.launch]->live;
  if (!is_frozen(thread.rank())) {
    copy.ready_at = static_cast<std::int32_t>(ready_.size());
    ready_.push_back(~copy.index);
  }
}

void Thread::start_load(Span to, Span from, int checked, std::int32_t stamp, MbarrierId landed,
                        int peer) {
  Mbarrier& barrier = machine_.mbarrier(landed);
  Copy& copy = machine_.new_copy();
  copy.from = from.first;
  copy.from_count = static_cast<std::int16_t>(from.count);
  copy.checked = static_cast<std::int16_t>(checked);
  copy.to = to.first;
  copy.to_count = static_cast<std::int16_t>(to.count);
  copy.stamp = stamp;
  copy.mbarrier = landed;
  copy.group = -1;
  copy.reads = copy.writes = barrier.copier;
  copy.reads_at = copy.writes_at = ++machine_.ticks_[barrier.copier];
  copy.from_rank = static_cast<std::int16_t>(peer);
  copy.to_rank = label_.rank;
  ++loads_;
  machine_.start_copy(copy, *this);
  if (machine_.traces()) {
    machine_.note(*this,
                  fmt::format("bulk load {} -> {} starts", machine_.memory().name(from.first),
                              machine_.memory().name(to.first)));
  }
}

void Thread::start_constant_load(Span to, std::uint64_t value, std::int32_t stamp,
                                 MbarrierId landed) {
  Mbarrier& barrier = machine_.mbarrier(landed);
  Copy& copy = machine_.new_copy();
  copy.from = -1;
  copy.from_count = 0;
  copy.checked = 0;
  copy.constant = value;
  copy.to = to.first;
  copy.to_count = static_cast<std::int16_t>(to.count);
  copy.stamp = stamp;
  copy.mbarrier = landed;
  copy.group = -1;
  copy.reads = copy.writes = barrier.copier;
  copy.reads_at = copy.writes_at = ++machine_.ticks_[barrier.copier];
  copy.from_rank = copy.to_rank = label_.rank;
  ++loads_;
  machine_.start_copy(copy, *this);
}

void Thread::start_store(Span to, Span from, std::int32_t stamp, int peer) {
  Copy& copy = machine_.new_copy();
  copy.from = from.first;
  copy.from_count = static_cast<std::int16_t>(from.count);
  copy.checked = copy.from_count;
  copy.to = to.first;
  copy.to_count = static_cast<std::int16_t>(to.count);
  copy.stamp = stamp;
  copy.mbarrier = -1;
  copy.group = committed_;
  copy.reads = store_reads_;
  copy.writes = store_writes_;
  copy.reads_at = ++machine_.ticks_[store_reads_];
  copy.writes_at = ++machine_.ticks_[store_writes_];
  copy.from_rank = label_.rank;
  copy.to_rank = static_cast<std::int16_t>(peer);
  Group& group = groups_[committed_ % kGroups];
  ++group.to_read;
  ++group.to_write;
  group.reads_at = copy.reads_at;
  group.writes_at = copy.writes_at;
  machine_.start_copy(copy, *this);
  if (machine_.traces()) {
    machine_.note(*this,
                  fmt::format("bulk store {} -> {} starts", machine_.memory().name(from.first),
                              machine_.memory().name(to.first)));
  }
}

void Thread::commit_group() {
  const Group closed = groups_[committed_ % kGroups];
  ++committed_;
  Group& open = groups_[committed_ % kGroups];
  if (open.to_write > 0) {
    throw std::logic_error("too many groups of bulk stores under way in one thread");
  }
  open = {0, 0, closed.reads_at, closed.writes_at};
}

bool Thread::groups_done(int pending, bool reads) const {
  for (int g = std::max(0, committed_ - kGroups + 1); g < committed_ - pending; ++g) {
    const Group& group = groups_[g % kGroups];
    if (reads ? group.to_read > 0 : group.to_write > 0) {
      return false;
    }
  }
  return true;
}

void Thread::learn_groups(int pending, bool reads) {
  if (store_reads_ < 0 || committed_ - pending <= 0) {
    return;
  }
  const Group& last = groups_[(committed_ - pending - 1) % kGroups];
  generic_.raise(store_reads_, last.reads_at);
  async_.raise(store_reads_, last.reads_at);
  if (!reads) {
    async_.raise(store_writes_, last.writes_at);
  }
}

bool WaitGroups::await_ready() const noexcept {
  return thread.groups_done(pending, reads);
}
void WaitGroups::await_suspend(std::coroutine_handle<> who) const {
  thread.handle_ = who;
  thread.blocked_ = reads ? Blocked::read : Blocked::stored;
  thread.expected_ = static_cast<std::uint64_t>(pending);
  thread.is_bounded_ = false;
  thread.machine_.block(thread, thread.own_waiters_);
}
void WaitGroups::await_resume() const {
  thread.learn_groups(pending, reads);
  if (thread.machine_.traces()) {
    thread.machine_.note(thread,
                         fmt::format("bulk wait_group{} {}", reads ? ".read" : "", pending));
  }
}

Access Machine::access_of(const Copy& copy, bool writing) {
  return {&copy.before,
          &copy.reads_before,
          writing ? copy.writes : copy.reads,
          writing ? copy.writes_at : copy.reads_at,
          copy.who,
          true};
}

void Machine::read_for(Copy& copy) {
  const Access access = access_of(copy, false);
  copy.payload.fill(copy.constant);
  for (int i = 0; i < copy.from_count; ++i) {
    copy.payload[i] =
        memory_.read(copy.from + i, access, i < copy.checked ? copy.stamp : kAnyStamp);
  }
  copy.read_done = true;
}

std::uint64_t folded(const std::uint64_t* parts, int count) {
  std::uint64_t value = parts[0];
  for (int i = 1; i < count; ++i) {
    value ^= parts[i] == parts[0] ? 0 : parts[i] + 1;
  }
  return value;
}

// Fewer cells read than written: the value goes into all of them. Fewer written than read: the parts of
// one row.
void Machine::write_for(Copy& copy) {
  const Access access = access_of(copy, true);
  if (copy.from_count > copy.to_count) {
    copy.payload[0] = folded(copy.payload.data(), copy.from_count);
  }
  for (int i = 0; i < copy.to_count; ++i) {
    const int from = copy.from_count < copy.to_count ? 0 : i;
    memory_.write(copy.to + i, access, copy.payload[from], copy.stamp);
  }
}

void Machine::advance_copy(std::int32_t index) {
  Copy& copy = *copies_[index];
  Thread& thread = *threads_[copy.thread];
  if (trace_ != nullptr) {
    trace_->push_back(
        fmt::format("{:5}  {:<44} {} {}", steps_, to_string(copy.label),
                    copy.mbarrier >= 0 ? "lands in"
                    : copy.read_done   ? "is written to"
                                       : "has been read from",
                    memory_.name(copy.mbarrier < 0 && !copy.read_done ? copy.from : copy.to)));
  }
  if (copy.mbarrier >= 0) {
    read_for(copy);
    write_for(copy);
    Mbarrier& barrier = *mbarriers_[copy.mbarrier];
    --barrier.copies;
    --thread.loads_;
    barrier.open_generic.raise(copy.writes, copy.writes_at);
    barrier.open_async.raise(copy.writes, copy.writes_at);
    complete_phase_if_full(barrier);
  } else if (!copy.read_done) {
    read_for(copy);
    --thread.groups_[copy.group % Thread::kGroups].to_read;
    wake(thread.own_waiters_);
    if (!is_frozen(copy.label.rank)) {
      copy.ready_at = static_cast<std::int32_t>(ready_.size());
      ready_.push_back(~index);
    }
    return;
  } else {
    write_for(copy);
    --thread.groups_[copy.group % Thread::kGroups].to_write;
    wake(thread.own_waiters_);
  }
  Launch& launch = *launches_[copy.launch];
  launch.end.raise(copy.reads, copy.reads_at);
  launch.end.raise(copy.writes, copy.writes_at);
  free_copies_.push_back(index);
  end_of_launch(launch);
}

// --- mbarriers -----------------------------------------------------------------------------------

void Thread::init_mbarrier(MbarrierId id, int threads, bool loads) {
  Mbarrier& barrier = machine_.mbarrier(id);
  const int width = machine_.width_;
  barrier.threads = barrier.pending = threads;
  barrier.copies = 0;
  barrier.completed = 0;
  barrier.waiters = {};
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

void Thread::arrive(MbarrierId id) {
  arrive_on(id);
}

void Thread::arrive_expecting(MbarrierId id, int copies) {
  machine_.mbarrier(id).copies += copies;
  arrive_on(id);
}

bool Thread::has_passed(MbarrierId id, std::uint32_t parity) const {
  return machine_.mbarrier(id).passed(parity);
}

bool WaitPhase::await_ready() const noexcept {
  return thread.machine_.mbarrier(mbarrier).passed(parity);
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

bool Meeting::await_ready() const noexcept {
  return thread.machine_.barrier(barrier).completed >= generation;
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
  machine.free_components_[thread.device_].insert(machine.free_components_[thread.device_].end(),
                                                  ended.components.begin(), ended.components.end());
  machine.free_threads_.insert(machine.free_threads_.end(), ended.threads.begin(),
                               ended.threads.end());
  ended.components.clear();
  ended.threads.clear();
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
