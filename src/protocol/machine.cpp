// Places, threads and launches of the machine.
#include "protocol/machine.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

namespace fusescope::protocol {
Machine::Machine() = default;

Machine::~Machine() {
  clear();
}

void Machine::clear() {
  for (std::size_t i = 0; i < threads_used_; ++i) {
    if (threads_[i]->alive_) {
      threads_[i]->root_.destroy();
      threads_[i]->alive_ = false;
    }
  }
}

void Machine::reset(const MachineSize& size) {
  clear();
  size_ = size;
  size_.components_per_device = (size.components_per_device + 7) / 8 * 8;
  width_ = size_.devices * size_.components_per_device;
  if (width_ > kMostComponents) {
    throw std::logic_error("the protocol machine has clocks for " +
                           std::to_string(kMostComponents) + " components, not " +
                           std::to_string(width_));
  }
  memory_.reset([this](FindingKind kind, std::string what) { report(kind, std::move(what)); },
                &labels_);
  words_used_ = mbarriers_used_ = barriers_used_ = threads_used_ = launches_used_ = copies_used_ =
      0;
  free_threads_.clear();
  free_copies_.clear();
  ticks_.assign(width_, 0);
  free_components_.resize(size_.devices);
  for (int d = 0; d < size_.devices; ++d) {
    free_components_[d].clear();
    for (int c = size_.components_per_device - 1; c >= 0; --c) {
      free_components_[d].push_back(static_cast<Component>(d * size_.components_per_device + c));
    }
  }
  free_sms_.assign(size_.devices, size_.sms);
  sms_waiters_.assign(size_.devices, {});
  ready_.clear();
  bounded_.clear();
  labels_.clear();
  abort_words_.clear();
  claimed_.clear();
  diagnoses_.clear();
  last_ = -1;
  live_threads_ = 0;
  timeouts_ = aborted_ = false;
  frozen_rank_ = -1;
  frozen_at_ = 0;
  steps_ = 0;
  finding_.reset();
  error_ = nullptr;
  trace_ = nullptr;
}

void Machine::guard(std::vector<WordId> abort_words, std::vector<WordId> claimed,
                    std::vector<CellId> diagnoses) {
  abort_words_ = std::move(abort_words);
  claimed_ = std::move(claimed);
  diagnoses_ = std::move(diagnoses);
}

// --- places --------------------------------------------------------------------------------------

WordId Machine::add_words(Name name, int count, int device, bool grows) {
  const auto first = static_cast<WordId>(words_used_);
  for (int i = 0; i < count; ++i, ++words_used_) {
    if (words_used_ == words_.size()) {
      words_.push_back(std::make_unique<Word>());
    }
    Word& word = *words_[words_used_];
    word.name = name;
    if (count > 1) {
      (word.name.i < 0 ? word.name.i : word.name.j) = static_cast<std::int16_t>(i);
    }
    word.device = static_cast<std::int16_t>(device);
    word.grows = grows;
    word.carries = false;
    word.most = std::numeric_limits<std::uint64_t>::max();
    word.count = 1;
    word.newest = 0;
    word.accesses = -1;
    word.waiters = {};
    WordEntry& entry = word.latest();
    entry.value = 0;
    entry.who = -1;
    entry.component = -1;
    entry.tick = 0;
    entry.scope = Scope::system;
    entry.releases = entry.plain = false;
  }
  return first;
}

WordId Machine::add_data_words(Name name, int count, int device) {
  const WordId first = add_words(name, count, device, true);
  for (WordId id = first; id < first + count; ++id) {
    words_[id]->carries = true;
  }
  return first;
}

MbarrierId Machine::add_mbarriers(int count) {
  const auto first = static_cast<MbarrierId>(mbarriers_used_);
  mbarriers_used_ += count;
  while (mbarriers_.size() < mbarriers_used_) {
    mbarriers_.push_back(std::make_unique<Mbarrier>());
  }
  forget_barriers(first, count, 0, 0);
  return first;
}

BarrierId Machine::add_barriers(int count) {
  const auto first = static_cast<BarrierId>(barriers_used_);
  barriers_used_ += count;
  while (barriers_.size() < barriers_used_) {
    barriers_.push_back(std::make_unique<NamedBarrier>());
  }
  forget_barriers(0, 0, first, count);
  return first;
}

void Machine::forget_barriers(MbarrierId mbarriers, int mbarrier_count, BarrierId barriers,
                              int barrier_count) {
  for (MbarrierId id = mbarriers; id < mbarriers + mbarrier_count; ++id) {
    mbarriers_[id]->waiters = {};
    mbarriers_[id]->watcher = -1;
  }
  for (BarrierId id = barriers; id < barriers + barrier_count; ++id) {
    NamedBarrier& barrier = *barriers_[id];
    barrier.expected = barrier.arrived = 0;
    barrier.completed = 0;
    barrier.open_vote = true;
    barrier.waiters = {};
    barrier.open_generic.clear(width_);
    barrier.open_async.clear(width_);
    barrier.generic.clear(width_);
    barrier.async.clear(width_);
  }
}

// --- threads -------------------------------------------------------------------------------------

Component Machine::take_component(int device, LaunchId launch) {
  std::vector<Component>& free = free_components_[device];
  if (free.empty()) {
    throw std::logic_error("the protocol machine ran out of clock components");
  }
  const Component component = free.back();
  free.pop_back();
  if (launch >= 0) {
    launches_[launch]->components.push_back(component);
  }
  return component;
}

Thread& Machine::new_thread(int device, LaunchId launch, Label label) {
  std::int32_t index = 0;
  if (!free_threads_.empty()) {
    index = free_threads_.back();
    free_threads_.pop_back();
  } else {
    index = static_cast<std::int32_t>(threads_used_++);
    if (threads_used_ > threads_.size()) {
      threads_.push_back(std::make_unique<Thread>(*this, index));
    }
  }
  Thread& thread = *threads_[index];
  thread.label_ = label;
  thread.label_id_ = static_cast<LabelId>(labels_.size());
  labels_.push_back(label);
  thread.device_ = static_cast<std::int16_t>(device);
  thread.launch_ = launch;
  thread.store_reads_ = thread.store_writes_ = -1;
  thread.has_fenced_gpu_ = thread.has_fenced_system_ = thread.has_pending_ = false;
  thread.groups_ = {};
  thread.committed_ = thread.loads_ = 0;
  thread.loads_of_ = index;
  thread.alive_ = false;
  thread.ready_at_ = thread.bounded_at_ = thread.next_waiter_ = -1;
  thread.waiting_in_ = nullptr;
  thread.own_waiters_ = {};
  thread.blocked_ = Blocked::no;
  thread.is_bounded_ = thread.timed_out_ = false;
  thread.own_ = take_component(device, launch);
  ++ticks_[thread.own_];
  return thread;
}

Thread& Machine::add_stream(int device, Label label) {
  Thread& thread = new_thread(device, -1, label);
  thread.generic_.clear(width_);
  thread.async_.clear(width_);
  thread.before_launch_.clear(width_);
  thread.generic_.at[thread.own_] = ticks_[thread.own_];
  return thread;
}

LaunchId Machine::begin_launch() {
  const auto id = static_cast<LaunchId>(launches_used_++);
  if (launches_used_ > launches_.size()) {
    launches_.push_back(std::make_unique<Launch>());
  }
  Launch& launch = *launches_[id];
  launch.live = 0;
  launch.end.clear(width_);
  launch.components.clear();
  launch.threads.clear();
  launch.waiters = {};
  return id;
}

Thread& Machine::add_thread(Thread& stream, LaunchId launch, Label label, bool stores) {
  Thread& thread = new_thread(stream.device_, launch, label);
  launches_[launch]->threads.push_back(thread.index_);
  ++launches_[launch]->live;
  thread.generic_.copy(stream.generic_, width_);
  thread.async_.clear(width_);
  const int first = stream.device_ * size_.components_per_device;
  std::copy_n(stream.generic_.at.begin() + first, size_.components_per_device,
              thread.async_.at.begin() + first);
  thread.generic_.at[thread.own_] = ticks_[thread.own_];
  thread.before_launch_.copy(stream.generic_, width_);
  stream.advance();
  if (stores) {
    give_stores(thread);
  }
  return thread;
}

Thread& Machine::add_early_thread(Thread& stream, LaunchId launch, Label label, bool stores) {
  Thread& thread = new_thread(stream.device_, launch, label);
  launches_[launch]->threads.push_back(thread.index_);
  ++launches_[launch]->live;
  thread.generic_.clear(width_);
  thread.async_.clear(width_);
  thread.before_launch_.copy(stream.generic_, width_);
  thread.generic_.at[thread.own_] = ticks_[thread.own_];
  stream.advance();
  if (stores) {
    give_stores(thread);
  }
  return thread;
}

Thread& Machine::fork(Thread& parent, Label label, bool stores) {
  Thread& thread = new_thread(parent.device_, parent.launch_, label);
  launches_[parent.launch_]->threads.push_back(thread.index_);
  ++launches_[parent.launch_]->live;
  thread.generic_.copy(parent.generic_, width_);
  thread.async_.copy(parent.async_, width_);
  thread.before_launch_.copy(parent.before_launch_, width_);
  thread.generic_.at[thread.own_] = ticks_[thread.own_];
  parent.advance();
  if (stores) {
    give_stores(thread);
  }
  return thread;
}

void Machine::give_stores(Thread& thread) {
  if (thread.store_reads_ < 0) {
    thread.store_reads_ = take_component(thread.device_, thread.launch_);
    thread.store_writes_ = take_component(thread.device_, thread.launch_);
  }
}

void Machine::start(Thread& thread, Task task) {
  thread.root_ = task.release();
  thread.root_.promise().awaiting = std::noop_coroutine();
  thread.handle_ = thread.root_;
  thread.alive_ = true;
  ++live_threads_;
  make_ready(thread.index_);
}

void Machine::give_sms(int device, int count) {
  free_sms_[device] += count;
  wake(sms_waiters_[device]);
}

void Machine::give_back(LaunchId launch, int device) {
  Launch& ended = *launches_[launch];
  free_components_[device].insert(free_components_[device].end(), ended.components.begin(),
                                  ended.components.end());
  free_threads_.insert(free_threads_.end(), ended.threads.begin(), ended.threads.end());
  ended.components.clear();
  ended.threads.clear();
}

void Machine::end_of_launch(Launch& launch) {
  if (--launch.live == 0) {
    wake(launch.waiters);
  }
}

void Machine::finish(Thread& thread) {
  if (thread.root_.promise().error && !error_) {
    error_ = thread.root_.promise().error;
  }
  thread.root_.destroy();
  thread.alive_ = false;
  --live_threads_;
  thread.leave_shared_memory();
  if (thread.launch_ >= 0) {
    Launch& launch = *launches_[thread.launch_];
    launch.end.join(thread.generic_, width_);
    launch.end.join(thread.async_, width_);
    end_of_launch(launch);
  }
}

}  // namespace fusescope::protocol
