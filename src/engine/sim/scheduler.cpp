#include "engine/sim/scheduler.hpp"

#include <algorithm>
#include <new>
#include <string>

#include "base/error.hpp"

namespace fusescope::engine::sim {

void* FramePool::take(std::size_t bytes) {
  const std::size_t size_class = (bytes + sizeof(Header) + kStep - 1) / kStep;
  std::byte* place = nullptr;
  if (size_class >= kClasses) {
    place = static_cast<std::byte*>(::operator new(bytes + sizeof(Header)));
  } else if (free_[size_class] != nullptr) {
    Free* reused = free_[size_class];
    free_[size_class] = reused->next;
    place = reinterpret_cast<std::byte*>(reused);
  } else {
    const std::size_t size = size_class * kStep;
    if (left_ < size) {
      chunks_.push_back(std::make_unique<std::byte[]>(kChunk));
      cursor_ = chunks_.back().get();
      left_ = kChunk;
    }
    place = cursor_;
    cursor_ += size;
    left_ -= size;
  }
  new (place) Header{this, size_class};
  return place + sizeof(Header);
}

void FramePool::give(void* frame) noexcept {
  std::byte* place = static_cast<std::byte*>(frame) - sizeof(Header);
  const Header header = *reinterpret_cast<Header*>(place);
  if (header.size_class >= kClasses) {
    ::operator delete(place);
    return;
  }
  Free*& list = header.pool->free_[header.size_class];
  list = new (place) Free{list};
}

std::coroutine_handle<> Task::FinalAwaiter::await_suspend(Handle self) const noexcept {
  promise_type& promise = self.promise();
  if (promise.scheduler != nullptr) {
    promise.scheduler->retire(self);
    return std::noop_coroutine();
  }
  return promise.awaiting;
}

Scheduler::~Scheduler() {
  // After an error blocks are left that wait for ever; their frames go before the pool does.
  for (const Task::Handle root : roots_) {
    root.destroy();
  }
}

void Scheduler::spawn(Task task) {
  const Task::Handle root = task.release();
  root.promise().scheduler = this;
  root.promise().root = roots_.size();
  roots_.push_back(root);
  wake_at(now_, root);
}

void Scheduler::retire(Task::Handle root) noexcept {
  if (root.promise().error && !error_) {
    error_ = root.promise().error;
  }
  const std::size_t place = root.promise().root;
  roots_[place] = roots_.back();
  roots_[place].promise().root = place;
  roots_.pop_back();
  root.destroy();
}

void Scheduler::wake_at(Time at, std::coroutine_handle<> who) {
  const Step step{at, queued_++, who};
  steps_.push_back(step);
  if (chooser_ != nullptr) {
    return;
  }
  std::size_t hole = steps_.size() - 1;
  while (hole > 0) {
    const std::size_t parent = (hole - 1) / 4;
    if (!step.before(steps_[parent])) {
      break;
    }
    steps_[hole] = steps_[parent];
    hole = parent;
  }
  steps_[hole] = step;
}

Scheduler::Step Scheduler::take_next() {
  if (chooser_ != nullptr) {
    const std::size_t chosen = chooser_->choose(steps_.size());
    const Step step = steps_.at(chosen);
    steps_[chosen] = steps_.back();
    steps_.pop_back();
    return step;
  }
  const Step first = steps_.front();
  const Step last = steps_.back();
  steps_.pop_back();
  const std::size_t size = steps_.size();
  std::size_t hole = 0;
  while (size > 0) {
    const std::size_t child = hole * 4 + 1;
    if (child >= size) {
      break;
    }
    std::size_t least = child;
    const std::size_t end = std::min(child + 4, size);
    for (std::size_t other = child + 1; other < end; ++other) {
      if (steps_[other].before(steps_[least])) {
        least = other;
      }
    }
    if (!steps_[least].before(last)) {
      break;
    }
    steps_[hole] = steps_[least];
    hole = least;
  }
  if (size > 0) {
    steps_[hole] = last;
  }
  return first;
}

void Scheduler::run() {
  while (!steps_.empty()) {
    const Step step = take_next();
    now_ = std::max(now_, step.at);
    ++steps_run_;
    step.who.resume();
    if (error_) {
      std::rethrow_exception(error_);
    }
  }
  if (!roots_.empty()) {
    throw CheckFailure("the simulation is stuck at " + std::to_string(now_) + " ns: " +
                       std::to_string(roots_.size()) + " blocks wait for what nobody will signal");
  }
}

}  // namespace fusescope::engine::sim
