// Counters, dispenser, election and rendezvous: what they let through, and what they refuse.
#include "engine/sim/sync.hpp"

#include <gtest/gtest.h>

#include <vector>

#include "engine/sim/resources.hpp"

namespace fusescope::engine::sim {
namespace {

struct Core {
  Scheduler scheduler;
  FramePool& frame_pool() { return scheduler.frame_pool(); }
};

Task wait_and_log(Core& core, FillCounter& counter, std::vector<Time>& log) {
  co_await counter.opened();
  log.push_back(core.scheduler.now());
}

Task add_at(Core& core, FillCounter& counter, Time at, Time seen_after) {
  co_await core.scheduler.until(at);
  counter.add(core.scheduler, seen_after);
}

TEST(FillCounter, OpensWithTheLastArrivalAndIsSeenAPollLater) {
  Core core;
  FillCounter gate(126, 128, "gate");  // seeded with the slack of 126 padding rows
  std::vector<Time> log;
  core.scheduler.spawn(wait_and_log(core, gate, log));
  core.scheduler.spawn(add_at(core, gate, 10, 3));
  core.scheduler.spawn(add_at(core, gate, 40, 3));
  core.scheduler.run();
  EXPECT_EQ(log, (std::vector<Time>{43}));
  EXPECT_EQ(gate.opened_at(), 40);
}

TEST(FillCounter, FullSeedIsOpen) {
  EXPECT_TRUE(FillCounter(128, 128, "gate").is_open());
  EXPECT_FALSE(FillCounter(127, 128, "gate").is_open());
}

TEST(FillCounter, RefusesToOvershoot) {
  Scheduler scheduler;
  FillCounter watermark(0, 1, "watermark", 3);
  watermark.add(scheduler, 0);
  EXPECT_THROW(watermark.add(scheduler, 0), CheckFailure);
  EXPECT_THROW(FillCounter(129, 128, "gate"), CheckFailure);
}

TEST(Dispenser, RefusesASecondClaimOfAJob) {
  Dispenser dispenser(3);
  EXPECT_EQ(dispenser.claim(), 0);
  EXPECT_EQ(dispenser.claim(), 1);
  dispenser.take(0);
  dispenser.take(1);
  EXPECT_THROW(dispenser.take(1), CheckFailure);
  EXPECT_EQ(dispenser.claim(), 2);
  EXPECT_EQ(dispenser.claim(), dispenser.jobs());
}

TEST(Election, ElectsExactlyTheLastPushOfEveryChunk) {
  for (const int tokens : {1, 7, 9, 512}) {
    for (int chunks = 1; chunks <= std::min(tokens, 8); ++chunks) {
      Election election(2, chunks, tokens);
      std::vector<int> elected(static_cast<std::size_t>(chunks), 0);
      for (long long row = 0; row < tokens; ++row) {
        const int chunk = static_cast<int>(row * chunks / tokens);
        elected[static_cast<std::size_t>(chunk)] += election.counted_last(1, chunk);
        const bool last_of_chunk = row + 1 == tokens || (row + 1) * chunks / tokens != chunk;
        ASSERT_EQ(elected[static_cast<std::size_t>(chunk)], last_of_chunk)
            << tokens << " tokens, " << chunks << " chunks, row " << row;
      }
      EXPECT_THROW(election.counted_last(1, chunks - 1), CheckFailure);
    }
  }
}

Task meet_at(Core& core, Rendezvous& rendezvous, Time at, std::vector<Time>& log) {
  co_await core.scheduler.until(at);
  co_await rendezvous;
  log.push_back(core.scheduler.now());
}

TEST(Rendezvous, EveryoneLeavesAfterTheLastCame) {
  Core core;
  Rendezvous barrier(core.scheduler, 3, 5);
  std::vector<Time> log;
  for (const Time at : {7, 100, 30}) {
    core.scheduler.spawn(meet_at(core, barrier, at, log));
  }
  core.scheduler.run();
  EXPECT_EQ(log, (std::vector<Time>{105, 105, 105}));
}

TEST(Server, QueuesBehindWhatIsAhead) {
  Server link;
  EXPECT_DOUBLE_EQ(link.reserve(0, 10), 10);
  EXPECT_DOUBLE_EQ(link.reserve(5, 10), 20);
  EXPECT_DOUBLE_EQ(link.reserve(100, 10), 110);
}

// A transfer that has to wait long at one server advances the other by its own share only.
TEST(Server, WaitingAtOneDoesNotBlockTheOther) {
  Server egress_0, egress_1, ingress;
  for (int row = 0; row < 100; ++row) {
    egress_0.reserve(0, 10);
    ingress.reserve(0, 1);
  }
  const double from_idle_source = std::max(egress_1.reserve(0, 10), ingress.reserve(0, 1));
  EXPECT_DOUBLE_EQ(from_idle_source, 101);
}

TEST(DeviceMemory, ForgetsWhatAWholeCacheWentAfter) {
  DeviceMemory memory(1, 1000);
  std::vector<double> touched(2, -1.0);
  EXPECT_FALSE(memory.touch(touched, 0));
  memory.move(0, 600);
  EXPECT_TRUE(memory.touch(touched, 0));
  memory.move(0, 1000);
  EXPECT_FALSE(memory.touch(touched, 0));
  EXPECT_FALSE(memory.touch(touched, 1));
}

}  // namespace
}  // namespace fusescope::engine::sim
