// The words that the prologue sends: an id and its iteration, neither of which touches the other.
#include "kernels/layer_args.hpp"

#include <gtest/gtest.h>

#include <limits>

namespace fusescope::kernels {
namespace {

constexpr std::uint64_t kIterations[] = {0, 1, 2, 0xffff, 0x10000, (1ULL << 48) - 1};

TEST(StampedIds, HoldIdAndIteration) {
  for (const std::uint64_t iteration : kIterations) {
    for (const std::int32_t id : {0, 1, 255, 1023, 0x7fff, 0x8000, 0xfffe}) {
      const std::uint64_t word = stamp_id(id, iteration);
      EXPECT_EQ(id_of(word), static_cast<std::uint32_t>(id)) << iteration;
      EXPECT_EQ(iteration_of(word), iteration) << id;
    }
  }
}

// A rank sends what it was given: the last expert stands for what is no expert's.
TEST(StampedIds, HoldTheLargestForIdsThatDoNotFit) {
  using Limits = std::numeric_limits<std::int32_t>;
  for (const std::uint64_t iteration : kIterations) {
    for (const std::int32_t id :
         {0xffff, 0x10000, 0x10001, Limits::max(), -1, -0x10000, Limits::min()}) {
      const std::uint64_t word = stamp_id(id, iteration);
      EXPECT_EQ(id_of(word), 0xffffU) << id;
      EXPECT_EQ(iteration_of(word), iteration) << id;
    }
  }
}

// Zeroed memory passes for no iteration's: the first is 1.
TEST(StampedIds, AreOfNoIterationAtFirst) {
  EXPECT_EQ(iteration_of(0), 0U);
  EXPECT_GT(iteration_of(stamp_id(0, 1)), iteration_of(0));
}

}  // namespace
}  // namespace fusescope::kernels
