// Bulk copies, and plain asynchronous ones: agents of their own between their start and their completion.
#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

#include "protocol/machine.hpp"
#include "protocol/thread.hpp"

namespace fusescope::protocol {

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
  copy.read_done = copy.plain = false;
  copy.ready_at = -1;
  return copy;
}

void Machine::start_copy(Copy& copy, const Thread& thread) {
  const bool loads = copy.mbarrier >= 0;
  copy.thread = loads ? thread.loads_of_ : thread.index_;
  threads_[copy.thread]->loads_ += loads ? 1 : 0;
  copy.who = thread.label_id_;
  copy.launch = thread.launch_;
  copy.label = thread.label_;
  copy.label.role = loads ? Role::load : Role::store;
  copy.before.copy(copy.plain ? thread.generic_ : thread.async_, width_);
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
  load(machine_.new_copy(), to, from, checked, stamp, landed, peer);
}

void Thread::start_plain_load(Span to, Span from, std::int32_t stamp, MbarrierId landed, int peer) {
  Copy& copy = machine_.new_copy();
  copy.plain = true;
  load(copy, to, from, from.count, stamp, landed, peer);
}

void Thread::load(Copy& copy, Span to, Span from, int checked, std::int32_t stamp,
                  MbarrierId landed, int peer) {
  Mbarrier& barrier = machine_.mbarrier(landed);
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
  machine_.start_copy(copy, *this);
  if (machine_.traces()) {
    machine_.note(
        *this, fmt::format("{} {} -> {} starts", copy.plain ? "cp.async" : "bulk load",
                           machine_.memory().name(from.first), machine_.memory().name(to.first)));
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

void Thread::leave_shared_memory() const {
  if (loads_ > 0 || !groups_done(0, true) || groups_[committed_ % kGroups].to_read > 0) {
    machine_.report(
        FindingKind::incomplete,
        to_string(label_) +
            " ends while a bulk copy may still read or write its block's shared memory");
  }
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
          !copy.plain};
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
    if (!copy.plain) {
      barrier.open_async.raise(copy.writes, copy.writes_at);
    }
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

}  // namespace fusescope::protocol
