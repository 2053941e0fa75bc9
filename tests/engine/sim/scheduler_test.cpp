// The event core: order of steps, coroutines that end, fail or wait for ever, and frames that are reused.
#include "engine/sim/scheduler.hpp"

#include <gtest/gtest.h>

#include <queue>
#include <random>
#include <stdexcept>
#include <vector>

#include "base/error.hpp"
#include "engine/sim/sync.hpp"

namespace fusescope::engine::sim {
namespace {

struct Core {
  Scheduler scheduler;
  FramePool& frame_pool() { return scheduler.frame_pool(); }
};

std::coroutine_handle<> marker(std::uint64_t id) {
  return std::coroutine_handle<>::from_address(reinterpret_cast<void*>(id * 16));
}

// Against a plain priority queue: near and far steps, equal times, gaps longer than the wheel.
TEST(StepQueue, TakesStepsAsAPriorityQueueDoes) {
  struct Expected {
    Time at;
    std::uint64_t order;
    bool operator<(const Expected& other) const {
      return at != other.at ? at > other.at : order > other.order;
    }
  };
  std::mt19937_64 random(7);
  for (int round = 0; round < 20; ++round) {
    StepQueue queue;
    std::priority_queue<Expected> expected;
    Time now = 0;
    std::uint64_t order = 0;
    for (int step = 0; step < 20'000; ++step) {
      const bool push = expected.empty() || random() % 100 < (step < 10'000 ? 55u : 45u);
      if (push) {
        const Time reach = std::vector<Time>{1, 50, 5'000, 16'384, 200'000}[random() % 5];
        const Time at = now + static_cast<Time>(random() % static_cast<std::uint64_t>(reach));
        queue.push(at, marker(order));
        expected.push({at, order++});
        continue;
      }
      ASSERT_FALSE(queue.empty());
      const Step taken = queue.take();
      ASSERT_EQ(taken.at, expected.top().at);
      ASSERT_EQ(taken.who.address(), marker(expected.top().order).address());
      now = taken.at;
      expected.pop();
    }
    ASSERT_EQ(queue.empty(), expected.empty());
  }
}

Task log_after(Core& core, Time delay, int id, std::vector<int>& log) {
  co_await core.scheduler.until(core.scheduler.now() + delay);
  log.push_back(id);
}

TEST(Scheduler, RunsEqualTimesInTheOrderOfQueueing) {
  Core core;
  std::vector<int> log;
  core.scheduler.spawn(log_after(core, 20, 1, log));
  core.scheduler.spawn(log_after(core, 10, 2, log));
  core.scheduler.spawn(log_after(core, 20, 3, log));
  core.scheduler.run();
  EXPECT_EQ(log, (std::vector<int>{2, 1, 3}));
  EXPECT_EQ(core.scheduler.now(), 20);
}

Task parent_of_two(Core& core, std::vector<int>& log) {
  co_await log_after(core, 5, 1, log);
  co_await log_after(core, 5, 2, log);
  log.push_back(3);
}

TEST(Scheduler, AwaitedTaskRunsWithinTheAwaiting) {
  Core core;
  std::vector<int> log;
  core.scheduler.spawn(parent_of_two(core, log));
  core.scheduler.run();
  EXPECT_EQ(log, (std::vector<int>{1, 2, 3}));
  EXPECT_EQ(core.scheduler.now(), 10);
}

Task fails(Core& core) {
  co_await core.scheduler.until(3);
  throw std::runtime_error("broken");
}

Task awaits_failure(Core& core, bool& reached) {
  co_await fails(core);
  reached = true;
}

TEST(Scheduler, ThrowsWhatATaskThrew) {
  Core core;
  bool reached = false;
  core.scheduler.spawn(awaits_failure(core, reached));
  EXPECT_THROW(core.scheduler.run(), std::runtime_error);
  EXPECT_FALSE(reached);
}

Task waits_for(Core&, FillCounter& counter) {
  co_await counter.opened();
}

TEST(Scheduler, SaysThatBlocksWaitForEver) {
  Core core;
  FillCounter counter(0, 2, "gate");
  core.scheduler.spawn(waits_for(core, counter));
  core.scheduler.spawn(waits_for(core, counter));
  try {
    core.scheduler.run();
    FAIL() << "ended though two tasks wait";
  } catch (const CheckFailure& failure) {
    EXPECT_NE(std::string(failure.what()).find("2 blocks wait"), std::string::npos);
  }
}

TEST(FramePool, ReusesFramesOfTheSameClass) {
  FramePool pool;
  void* first = pool.take(200);
  void* other = pool.take(200);
  EXPECT_NE(first, other);
  FramePool::give(first);
  EXPECT_EQ(pool.take(190), first);
  void* large = pool.take(1 << 20);
  FramePool::give(large);
  FramePool::give(other);
}

struct LastFirst : StepChooser {
  std::size_t choose(std::size_t pending) override { return pending - 1; }
};

struct ChosenCore {
  LastFirst chooser;
  Scheduler scheduler{&chooser};
  FramePool& frame_pool() { return scheduler.frame_pool(); }
};

Task log_at(ChosenCore& core, Time at, int id, std::vector<int>& log) {
  co_await core.scheduler.until(at);
  log.push_back(id);
}

TEST(Scheduler, AChooserMayRunALaterStepFirst) {
  ChosenCore core;
  std::vector<int> log;
  core.scheduler.spawn(log_at(core, 10, 1, log));
  core.scheduler.spawn(log_at(core, 30, 2, log));
  core.scheduler.spawn(log_at(core, 20, 3, log));
  core.scheduler.run();
  // Each start is chosen last to first, and so is each step that it queues.
  EXPECT_EQ(log, (std::vector<int>{3, 2, 1}));
}

}  // namespace
}  // namespace fusescope::engine::sim
