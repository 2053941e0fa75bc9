#pragma once
// Pending steps in the order in which they run: by time, and first queued first among equals. A wheel with
// one bucket a nanosecond holds the near future, where almost every step lies, in constant time; a heap
// holds the rest. Steps never move between the two: the earlier of both fronts is taken.

#include <array>
#include <coroutine>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace fusescope::engine::sim {

using Time = std::int64_t;  // [ns] since the iteration's begin

struct Step {
  Time at;
  std::uint64_t order;  // of queueing
  std::coroutine_handle<> who;
  bool before(const Step& other) const {
    return at != other.at ? at < other.at : order < other.order;
  }
};

class StepQueue {
 public:
  StepQueue();

  bool empty() const { return wheel_steps_ == 0 && heap_.empty(); }
  // `at` must not lie before the last step taken.
  void push(Time at, std::coroutine_handle<> who);
  Step take();

 private:
  static constexpr std::size_t kBuckets = std::size_t{1} << 14;  // [ns] that the wheel reaches
  static constexpr std::size_t kWords = kBuckets / 64;
  static constexpr std::uint32_t kNone = UINT32_MAX;
  struct Node {
    Step step;
    std::uint32_t next;
  };
  struct Bucket {
    std::uint32_t first = kNone;
    std::uint32_t last = kNone;
  };

  std::size_t next_bucket() const;  // the first that holds a step; the wheel must not be empty
  Step take_from(std::size_t bucket);
  void heap_push(const Step& step);
  Step heap_take();

  Time now_ = 0;
  std::uint64_t queued_ = 0;
  std::size_t wheel_steps_ = 0;
  std::vector<Bucket> buckets_;
  std::array<std::uint64_t, kWords> filled_{};        // a bit per bucket
  std::array<std::uint64_t, kWords / 64> summary_{};  // a bit per word of `filled_`
  std::vector<Node> nodes_;
  std::uint32_t free_node_ = kNone;
  std::vector<Step> heap_;  // 4-ary
};

}  // namespace fusescope::engine::sim
