#include "engine/sim/step_queue.hpp"

#include <algorithm>
#include <bit>

namespace fusescope::engine::sim {
namespace {

constexpr std::uint64_t bit(std::size_t index) {
  return std::uint64_t{1} << (index % 64);
}

}  // namespace

StepQueue::StepQueue() : buckets_(kBuckets) {
  nodes_.reserve(1024);
}

void StepQueue::push(Time at, std::coroutine_handle<> who) {
  const Step step{at, queued_++, who};
  if (at - now_ >= static_cast<Time>(kBuckets)) {
    heap_push(step);
    return;
  }
  std::uint32_t node = free_node_;
  if (node == kNone) {
    node = static_cast<std::uint32_t>(nodes_.size());
    nodes_.push_back({step, kNone});
  } else {
    free_node_ = nodes_[node].next;
    nodes_[node] = {step, kNone};
  }
  const std::size_t index = static_cast<std::size_t>(at) % kBuckets;
  Bucket& bucket = buckets_[index];
  if (bucket.first == kNone) {
    bucket.first = node;
    filled_[index / 64] |= bit(index);
    summary_[index / 4096] |= bit(index / 64);
  } else {
    nodes_[bucket.last].next = node;
  }
  bucket.last = node;
  ++wheel_steps_;
}

// Circular search from the present time's bucket on: its own word, then the words after it, at last the
// part of its own word that lies before it.
std::size_t StepQueue::next_bucket() const {
  const std::size_t start = static_cast<std::size_t>(now_) % kBuckets;
  const std::size_t first_word = start / 64;
  if (const std::uint64_t here = filled_[first_word] >> (start % 64); here != 0) {
    return start + static_cast<std::size_t>(std::countr_zero(here));
  }
  std::size_t word = (first_word + 1) % kWords;
  for (std::size_t looked = 0; looked <= summary_.size(); ++looked) {
    if (const std::uint64_t ahead = summary_[word / 64] >> (word % 64); ahead != 0) {
      word += static_cast<std::size_t>(std::countr_zero(ahead));
      return word * 64 + static_cast<std::size_t>(std::countr_zero(filled_[word]));
    }
    word = (word / 64 + 1) * 64 % kWords;
  }
  return kBuckets;
}

Step StepQueue::take_from(std::size_t index) {
  Bucket& bucket = buckets_[index];
  const std::uint32_t node = bucket.first;
  const Step step = nodes_[node].step;
  bucket.first = nodes_[node].next;
  if (bucket.first == kNone) {
    bucket.last = kNone;
    filled_[index / 64] &= ~bit(index);
    if (filled_[index / 64] == 0) {
      summary_[index / 4096] &= ~bit(index / 64);
    }
  }
  nodes_[node].next = free_node_;
  free_node_ = node;
  --wheel_steps_;
  return step;
}

Step StepQueue::take() {
  if (wheel_steps_ == 0) {
    const Step step = heap_take();
    now_ = step.at;
    return step;
  }
  const std::size_t index = next_bucket();
  const bool far_first = !heap_.empty() && heap_.front().before(nodes_[buckets_[index].first].step);
  const Step step = far_first ? heap_take() : take_from(index);
  now_ = step.at;
  return step;
}

void StepQueue::heap_push(const Step& step) {
  heap_.push_back(step);
  std::size_t hole = heap_.size() - 1;
  while (hole > 0) {
    const std::size_t parent = (hole - 1) / 4;
    if (!step.before(heap_[parent])) {
      break;
    }
    heap_[hole] = heap_[parent];
    hole = parent;
  }
  heap_[hole] = step;
}

Step StepQueue::heap_take() {
  const Step first = heap_.front();
  const Step last = heap_.back();
  heap_.pop_back();
  const std::size_t size = heap_.size();
  std::size_t hole = 0;
  while (true) {
    const std::size_t child = hole * 4 + 1;
    if (child >= size) {
      break;
    }
    std::size_t least = child;
    for (std::size_t other = child + 1; other < std::min(child + 4, size); ++other) {
      least = heap_[other].before(heap_[least]) ? other : least;
    }
    if (!heap_[least].before(last)) {
      break;
    }
    heap_[hole] = heap_[least];
    hole = least;
  }
  if (size > 0) {
    heap_[hole] = last;
  }
  return first;
}

}  // namespace fusescope::engine::sim
