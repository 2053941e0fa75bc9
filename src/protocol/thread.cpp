// What the operations of a thread do to clocks, words and barriers.
#include "protocol/thread.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

#include "protocol/machine.hpp"

namespace fusescope::protocol {
namespace {

constexpr Tick kMostTicks = 32'000;

bool releases(Order order) {
  return order == Order::release || order == Order::acq_rel;
}
bool acquires(Order order) {
  return order == Order::acquire || order == Order::acq_rel;
}

const char* to_string(Order order) {
  switch (order) {
    case Order::relaxed:
      return "relaxed";
    case Order::acquire:
      return "acquire";
    case Order::release:
      return "release";
    case Order::acq_rel:
      return "acq_rel";
  }
  return "?";
}

const char* to_string(Scope scope) {
  return scope == Scope::block ? "cta" : scope == Scope::gpu ? "gpu" : "sys";
}

std::string form(Order order, Scope scope) {
  return fmt::format("{}.{}", to_string(order), to_string(scope));
}

}  // namespace

engine::sim::FramePool& Thread::frame_pool() const {
  return machine_.frame_pool();
}

Access Thread::generic_access() const {
  return {&generic_, &generic_, own_, generic_.at[own_], label_id_, false};
}

std::uint64_t Thread::read(CellId cell, std::int32_t stamp) const {
  if (machine_.traces()) {
    machine_.note(*this, "ld  " + machine_.memory().name(cell));
  }
  return machine_.memory().read(cell, generic_access(), stamp);
}

std::uint64_t Thread::read_past_caches(CellId cell, std::int32_t stamp) const {
  if (machine_.traces()) {
    machine_.note(*this, "ld.relaxed  " + machine_.memory().name(cell));
  }
  Clock found;
  found.copy(generic_, machine_.width_);
  found.join(before_launch_, machine_.width_);
  Access access = generic_access();
  access.before = &found;
  return machine_.memory().read(cell, access, stamp);
}

void Thread::write(CellId cell, std::uint64_t value, std::int32_t stamp) const {
  if (machine_.traces()) {
    machine_.note(*this, "st  " + machine_.memory().name(cell));
  }
  machine_.memory().write(cell, generic_access(), value, stamp);
}

void Thread::advance() {
  Tick& tick = generic_.at[own_];
  if (++tick > kMostTicks) {
    throw std::logic_error("the protocol machine's clocks ran over: too long a schedule");
  }
  machine_.ticks_[own_] = tick;
}

void Thread::fence(Scope scope) {
  const int width = machine_.width_;
  if (has_pending_) {
    generic_.join(pending_, width);
    has_pending_ = false;
  }
  fenced_gpu_.copy(generic_, width);
  has_fenced_gpu_ = true;
  if (scope == Scope::system) {
    fenced_system_.copy(generic_, width);
    has_fenced_system_ = true;
  }
  if (machine_.traces()) {
    machine_.note(*this, fmt::format("fence.{}", to_string(scope)));
  }
  advance();
}

void Thread::fence_proxy_async() {
  const int width = machine_.width_;
  generic_.join(async_, width);
  async_.copy(generic_, width);
  if (machine_.traces()) {
    machine_.note(*this, "fence.proxy.async");
  }
  advance();
}

void Thread::wgmma_read(Span cells, std::int32_t stamp, std::uint64_t* values) const {
  Access access = generic_access();
  access.before = &async_;
  for (int i = 0; i < cells.count; ++i) {
    values[i] = machine_.memory().read(cells.first + i, access, stamp);
  }
  if (machine_.traces()) {
    machine_.note(*this, "wgmma reads " + machine_.memory().name(cells.first));
  }
}

void Thread::wgmma_wait() {
  async_.raise(own_, generic_.at[own_]);
  advance();
}

// --- words ---------------------------------------------------------------------------------------

void Thread::publish(WordEntry& entry, Order order, Scope scope, bool keeps) {
  const int width = machine_.width_;
  const Clock* shown = nullptr;
  if (releases(order)) {
    shown = &generic_;
  } else if (scope == Scope::system) {
    shown = has_fenced_system_ ? &fenced_system_ : nullptr;
  } else {
    shown = has_fenced_gpu_ ? &fenced_gpu_ : nullptr;
  }
  if (keeps && entry.releases) {
    if (shown != nullptr) {
      entry.clock.join(*shown, width);
    }
    entry.scope = std::min(entry.scope, scope);
  } else {
    entry.releases = shown != nullptr;
    if (shown != nullptr) {
      entry.clock.copy(*shown, width);
    }
    entry.scope = scope;
  }
  entry.who = label_id_;
  entry.component = own_;
  entry.tick = generic_.at[own_];
}

void Thread::acquire(const WordEntry& entry, int device, Order order, Scope scope) {
  if (entry.plain && !generic_.holds(entry.component, entry.tick)) {
    machine_.report(FindingKind::race,
                    fmt::format("a counter is used by {} before its initialisation is ordered",
                                protocol::to_string(label_)));
  }
  const bool reaches =
      device == device_ || (entry.scope == Scope::system && scope == Scope::system);
  if (!entry.releases || !reaches) {
    return;
  }
  if (acquires(order)) {
    generic_.join(entry.clock, machine_.width_);
  } else if (has_pending_) {
    pending_.join(entry.clock, machine_.width_);
  } else {
    pending_.copy(entry.clock, machine_.width_);
    has_pending_ = true;
  }
}

void Thread::initialise(WordId id, std::uint64_t value, std::uint64_t most) {
  Word& word = machine_.word(id);
  AccessPool& accesses = machine_.memory().accesses();
  if (const auto* other = accesses.unordered(word.accesses, generic_);
      other != nullptr && !machine_.aborted_) {
    machine_.report(FindingKind::race,
                    fmt::format("{} is initialised by {} while {} may still use it",
                                protocol::to_string(word.name), protocol::to_string(label_),
                                protocol::to_string(machine_.labels_[other->who])));
  }
  accesses.drop(word.accesses);
  accesses.add(word.accesses, own_, generic_.at[own_], label_id_, nullptr);
  word.count = 1;
  word.most = most;
  WordEntry& entry = word.latest();
  entry.value = value;
  entry.releases = false;
  entry.plain = true;
  entry.scope = Scope::system;
  entry.who = label_id_;
  entry.component = own_;
  entry.tick = generic_.at[own_];
  machine_.wake(word.waiters);
}

void StepPoint::await_suspend(std::coroutine_handle<> who) const {
  thread.handle_ = who;
  thread.blocked_ = Blocked::no;
  thread.is_bounded_ = false;
  thread.machine_.make_ready(thread.index_);
}

std::uint64_t LoadWord::await_resume() const {
  Machine& machine = thread.machine_;
  Word& w = machine.word(word);
  int floor = 0;
  for (int i = w.count - 1; i > 0; --i) {
    const WordEntry& entry = w.entry(i);
    if (entry.component >= 0 && thread.generic_.holds(entry.component, entry.tick)) {
      floor = i;
      break;
    }
  }
  const int choices = w.count - floor;
  const int chosen = floor + (choices > 1 ? machine.chooser_->choose_value(choices) : 0);
  const WordEntry& entry = w.entry(chosen);
  const std::uint64_t value = entry.value;
  machine.memory().accesses().add(w.accesses, thread.own_, thread.generic_.at[thread.own_],
                                  thread.label_id_, &thread.generic_);
  if (entry.component >= 0) {
    thread.acquire(entry, machine.device_of(entry), order, scope);
  }
  if (machine.traces()) {
    machine.note(thread, fmt::format("ld.{}  {} -> {}{}", form(order, scope), to_string(w.name),
                                     value, chosen == w.count - 1 ? "" : "  (an older value)"));
  }
  return value;
}

void StoreWord::await_resume() const {
  Machine& machine = thread.machine_;
  Word& w = machine.word(word);
  if (machine.traces()) {
    machine.note(thread, fmt::format("st.{}  {}: {} -> {}", form(order, scope), to_string(w.name),
                                     w.latest().value, value));
  }
  if (w.grows && value <= w.latest().value && !machine.aborted_) {
    machine.report(
        FindingKind::election,
        fmt::format("{} is set to {} by {}, and is {} already: a flag only grows",
                    to_string(w.name), value, to_string(thread.label_), w.latest().value));
  }
  if (const auto* other = machine.memory().accesses().unordered(w.accesses, thread.generic_);
      w.carries && other != nullptr && !machine.aborted_) {
    machine.report(
        FindingKind::race,
        fmt::format("{}: the access by {} is not ordered before the store by {}", to_string(w.name),
                    to_string(machine.labels_[other->who]), to_string(thread.label_)));
  }
  machine.memory().accesses().add(w.accesses, thread.own_, thread.generic_.at[thread.own_],
                                  thread.label_id_, &thread.generic_);
  w.newest = (w.newest + 1) % Word::kHistory;
  w.count = std::min(w.count + 1, Word::kHistory);
  WordEntry& entry = w.latest();
  entry.value = value;
  entry.plain = false;
  thread.publish(entry, order, scope, false);
  thread.advance();
  machine.wake(w.waiters);
}

std::uint64_t AddWord::await_resume() const {
  Machine& machine = thread.machine_;
  Word& w = machine.word(word);
  WordEntry& entry = w.latest();
  const std::uint64_t before = entry.value;
  if (machine.traces()) {
    machine.note(thread, fmt::format("red.{}  {}: {} -> {}", form(order, scope), to_string(w.name),
                                     before, before + add));
  }
  if (w.device != thread.device_) {
    machine.report(FindingKind::atomic, fmt::format("{} adds to {}, which lies on another GPU",
                                                    to_string(thread.label_), to_string(w.name)));
  }
  if (before + add > w.most && !machine.aborted_) {
    machine.report(FindingKind::overshoot,
                   fmt::format("{} counts {} to {}, and it ends at {}", to_string(thread.label_),
                               to_string(w.name), before + add, w.most));
  }
  machine.memory().accesses().add(w.accesses, thread.own_, thread.generic_.at[thread.own_],
                                  thread.label_id_, &thread.generic_);
  if (entry.component >= 0) {
    thread.acquire(entry, machine.device_of(entry), order, scope);
  }
  entry.value = before + add;
  entry.plain = false;
  thread.publish(entry, order, scope, true);
  thread.advance();
  machine.wake(w.waiters);
  return before;
}

void WaitWord::await_suspend(std::coroutine_handle<> who) const {
  thread.handle_ = who;
  thread.blocked_ = Blocked::word;
  thread.object_ = word;
  thread.expected_ = expected;
  thread.is_bounded_ = bounded;
  thread.machine_.block(thread, thread.machine_.word(word).waiters);
}

bool WaitWord::await_resume() const {
  return see(false) >= expected;
}

std::uint64_t TakeWord::await_resume() const {
  return see(true);
}

std::uint64_t WaitWord::see(bool any) const {
  Machine& machine = thread.machine_;
  const Word& w = machine.word(word);
  if (w.latest().value < expected) {
    if (thread.timed_out_) {
      thread.give_up();
    }
    if (machine.traces()) {
      machine.note(thread, fmt::format("wait {} >= {}: given up", to_string(w.name), expected));
    }
    return w.latest().value;
  }
  thread.timed_out_ = false;
  // Any value that is large enough, and not older than what the thread knows, may be the one that it
  // sees: the oldest of them tells it least.
  int seen = w.count - 1;
  for (int i = w.count - 2; i >= 0; --i) {
    const WordEntry& next = w.entry(i + 1);
    if (w.entry(i).value < expected ||
        (next.component >= 0 && thread.generic_.holds(next.component, next.tick))) {
      break;
    }
    seen = i;
  }
  if (any && seen < w.count - 1) {
    seen += machine.chooser_->choose_value(w.count - seen);
  }
  const WordEntry& entry = w.entry(seen);
  machine.memory().accesses().add(machine.word(word).accesses, thread.own_,
                                  thread.generic_.at[thread.own_], thread.label_id_,
                                  &thread.generic_);
  if (entry.component >= 0) {
    thread.acquire(entry, machine.device_of(entry), order, scope);
  }
  if (machine.traces()) {
    machine.note(thread, fmt::format("wait ld.{}  {} >= {}: {}", form(order, scope),
                                     to_string(w.name), expected, entry.value));
  }
  return entry.value;
}

// The first of a rank to give up leaves its diagnosis; each raises all abort words.
void Thread::give_up() {
  timed_out_ = false;
  machine_.aborted_ = true;
  machine_.memory().stop_checking();
  Word& claimed = machine_.word(machine_.claimed_[rank()]);
  if (claimed.latest().value == 0) {
    claimed.latest().value = 1;
    machine_.memory().write(machine_.diagnoses_[rank()], generic_access(), 1, 0);
  }
  for (std::size_t r = 0; r < machine_.abort_words_.size(); ++r) {
    machine_.word(machine_.abort_words_[r]).latest().value = 1;
    machine_.wake_all_bounded(static_cast<int>(r));
  }
}

}  // namespace fusescope::protocol
