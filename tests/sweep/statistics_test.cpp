#include "sweep/statistics.hpp"

#include <gtest/gtest.h>

#include <numeric>
#include <random>

namespace fusescope::sweep {
namespace {

TEST(Median, OfOddEvenAndNoSamples) {
  EXPECT_EQ(median({3, 1, 2}), 2);
  EXPECT_EQ(median({4, 1, 2, 3}), 2.5);
  EXPECT_EQ(median({}), 0);
}

// Ranks from published tables of the sign test's interval: n = 20 gives the 6th and the 15th sample with
// 95.86%, n = 10 the 2nd and the 9th with 97.85%.
TEST(MedianInterval, HasTheTabulatedRanks) {
  std::vector<double> samples(20);
  std::iota(samples.begin(), samples.end(), 1);
  const MedianInterval twenty = median_interval(samples);
  EXPECT_EQ(twenty.low, 6);
  EXPECT_EQ(twenty.high, 15);
  EXPECT_NEAR(twenty.coverage, 0.9586, 5e-5);

  samples.resize(10);
  const MedianInterval ten = median_interval(samples);
  EXPECT_EQ(ten.low, 2);
  EXPECT_EQ(ten.high, 9);
  EXPECT_NEAR(ten.coverage, 0.9785, 5e-5);
}

TEST(MedianInterval, IsTheRangeWhenSamplesAreTooFew) {
  const MedianInterval five = median_interval({5, 1, 4, 2, 3});
  EXPECT_EQ(five.low, 1);
  EXPECT_EQ(five.high, 5);
  EXPECT_NEAR(five.coverage, 0.9375, 1e-9);
  const MedianInterval one = median_interval({7});
  EXPECT_EQ(one.half_width(), 0);
  EXPECT_EQ(one.coverage, 0);
}

TEST(MedianInterval, CoversTheTrueMedianAsOftenAsItSays) {
  std::mt19937_64 generator(7);
  std::lognormal_distribution<double> skewed(0, 1);  // its median is 1
  int covered = 0;
  constexpr int kRounds = 4000;
  for (int round = 0; round < kRounds; ++round) {
    std::vector<double> samples(25);
    for (double& sample : samples) {
      sample = skewed(generator);
    }
    const MedianInterval interval = median_interval(samples);
    covered += interval.low <= 1 && 1 <= interval.high ? 1 : 0;
  }
  EXPECT_GT(covered, kRounds * 0.94);
  EXPECT_LT(covered, kRounds * 0.985);
}

TEST(MedianInterval, NarrowsWithManySamples) {
  std::vector<double> samples(10'001);
  std::iota(samples.begin(), samples.end(), 0);
  const MedianInterval interval = median_interval(samples);
  EXPECT_EQ(interval.median, 5000);
  EXPECT_NEAR(interval.half_width(), 98, 1);  // 1.96 * sqrt(n) / 2
}

}  // namespace
}  // namespace fusescope::sweep
