// The threads that enqueue each device's work, with no device: what runs where, rounds, errors, the end.
#include "engine/cuda/launch_threads.hpp"

#include <gtest/gtest.h>

#include <barrier>
#include <stdexcept>

namespace fusescope::engine::cuda {
namespace {

constexpr int kThreads = 4;

TEST(LaunchThreads, EachRunsItsPartOfEveryRoundOnAThreadOfItsOwn) {
  std::vector<std::thread::id> entered(kThreads);
  std::vector<int> rounds(kThreads,
                          0);  // written by its thread only, read by this one between rounds
  LaunchThreads threads(
      kThreads, [&](int i) { entered[static_cast<std::size_t>(i)] = std::this_thread::get_id(); });
  for (int round = 1; round <= 200; ++round) {
    std::barrier together(kThreads);
    threads.run([&](int i) {
      together.arrive_and_wait();  // ends only if all of them run at once
      const auto at = static_cast<std::size_t>(i);
      rounds[at] += entered[at] == std::this_thread::get_id() ? 1 : 0;
    });
    ASSERT_EQ(rounds, std::vector<int>(kThreads, round));
  }
}

TEST(LaunchThreads, ThrowWhatTheFirstThrewAndGoOn) {
  LaunchThreads threads(kThreads, [](int) {});
  const auto fails_from_two = [](int i) {
    if (i >= 2) {
      throw std::runtime_error("thread " + std::to_string(i));
    }
  };
  for (int round = 0; round < 20; ++round) {
    try {
      threads.run(fails_from_two);
      FAIL() << "an error was lost";
    } catch (const std::runtime_error& error) {
      EXPECT_STREQ(error.what(), "thread 2");
    }
    EXPECT_NO_THROW(threads.run([](int) {})) << "an error of the round before";
  }
}

TEST(LaunchThreads, AThreadThatCannotEnterFailsEveryRoundAndOnlyItsPart) {
  LaunchThreads threads(2, [](int i) {
    if (i == 1) {
      throw std::runtime_error("no such device");
    }
  });
  for (int round = 0; round < 3; ++round) {
    std::vector<int> ran(2, 0);
    EXPECT_THROW(threads.run([&](int i) { ran[static_cast<std::size_t>(i)] = 1; }),
                 std::runtime_error);
    EXPECT_EQ(ran, (std::vector<int>{1, 0}));
  }
}

TEST(LaunchThreads, EndWithoutARound) {
  for (int i = 0; i < 50; ++i) {
    const LaunchThreads threads(kThreads, [](int) {});
  }
}

}  // namespace
}  // namespace fusescope::engine::cuda
