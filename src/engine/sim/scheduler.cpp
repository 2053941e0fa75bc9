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
  if (chooser_ == nullptr) {
    steps_.push(std::max(at, now_), who);
  } else {
    bag_.push_back({at, 0, who});
  }
}

Step Scheduler::take_next() {
  if (chooser_ == nullptr) {
    return steps_.take();
  }
  const std::size_t chosen = chooser_->choose(bag_.size());
  const Step step = bag_.at(chosen);
  bag_[chosen] = bag_.back();
  bag_.pop_back();
  return step;
}

void Scheduler::run() {
  while (!steps_.empty() || !bag_.empty()) {
    const Step step = take_next();
    now_ = std::max(now_, step.at);
    ++steps_run_;
    step.who.resume();
    if (error_) {
      std::rethrow_exception(error_);
    }
  }
  if (!roots_.empty()) {
    const std::string where = "the simulation is stuck at " + std::to_string(now_) + " ns: ";
    throw CheckFailure(
        where + std::to_string(roots_.size()) + " blocks wait for what nobody will signal",
        CheckFailure::Kind::aborted);
  }
}

}  // namespace fusescope::engine::sim
