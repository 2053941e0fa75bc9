#include "base/random.hpp"

#include <gtest/gtest.h>

#include <vector>

#include "base/hash.hpp"

namespace fusescope {
namespace {

// The values themselves: routing, and with it every stored result, depends on them.
TEST(Random, IsTheSameOnEveryMachine) {
  EXPECT_EQ(mix64(0), 0xe220a8397b1dcdafull);  // splitmix64's first output for seed 0
  Random random(1, 2);
  const std::uint64_t first = random.next();
  EXPECT_EQ(first, mix64(mix64(mix64(1) ^ 2)));
  EXPECT_EQ(Random(1, 2).next(), first);
}

TEST(Random, StreamsDiffer) {
  EXPECT_NE(Random(1, 2).next(), Random(2, 1).next());
  EXPECT_NE(Random(1, 2).next(), Random(1, 3).next());
}

TEST(Random, BelowCoversItsRangeEvenly) {
  Random random(7);
  std::vector<int> counts(10, 0);
  for (int i = 0; i < 100000; ++i) {
    ++counts.at(random.below(10));
  }
  for (const int count : counts) {
    EXPECT_NEAR(count, 10000, 500);
  }
}

TEST(Random, UnitIsBelowOne) {
  Random random(7);
  double sum = 0;
  for (int i = 0; i < 100000; ++i) {
    const double value = random.unit();
    ASSERT_GE(value, 0);
    ASSERT_LT(value, 1);
    sum += value;
  }
  EXPECT_NEAR(sum / 100000, 0.5, 0.01);
}

TEST(StableHash, IsFnv1aAndSeparatesItsParts) {
  EXPECT_EQ(StableHash().value(), 14695981039346656037ull);
  StableHash one;
  one.add("ab");
  one.add("c");
  StableHash other;
  other.add("a");
  other.add("bc");
  EXPECT_NE(one.value(), other.value());
  StableHash number;
  number.add(std::uint64_t{1});
  EXPECT_NE(number.value(), StableHash().value());
}

}  // namespace
}  // namespace fusescope
