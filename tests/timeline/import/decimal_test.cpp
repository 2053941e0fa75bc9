// Numbers as they stand in traces become nanoseconds exactly.

#include "timeline/import/decimal.hpp"

#include <gtest/gtest.h>

namespace fusescope::timeline {
namespace {

TEST(Decimal, MicrosecondsBecomeNanosecondsExactly) {
  EXPECT_EQ(scaled_decimal("1682725898236567", 3), 1682725898236567000);
  EXPECT_EQ(scaled_decimal("1365627862757064.863", 3), 1365627862757064863);
  EXPECT_EQ(scaled_decimal("0.001", 3), 1);
  EXPECT_EQ(scaled_decimal("68.0", 3), 68000);
  EXPECT_EQ(scaled_decimal("-3.5", 3), -3500);
  EXPECT_EQ(scaled_decimal("0", 3), 0);
}

TEST(Decimal, DigitsBehindTheLastAreRounded) {
  EXPECT_EQ(scaled_decimal("12.3456", 3), 12346);
  EXPECT_EQ(scaled_decimal("12.3454999", 3), 12345);
  EXPECT_EQ(scaled_decimal("0.0005", 3), 1);
  EXPECT_EQ(scaled_decimal("-0.0005", 3), -1);
}

TEST(Decimal, ExponentsAreUnderstood) {
  EXPECT_EQ(scaled_decimal("1.5e3", 3), 1500000);
  EXPECT_EQ(scaled_decimal("25E-1", 3), 2500);
  EXPECT_EQ(scaled_decimal("1e-9", 3), 0);
}

TEST(Decimal, WhatIsNoNumberOrTooLargeIsRefused) {
  for (const char* text : {"", "-", "abc", "1e", "1e999", "1.2.3", "\"5\"", "null", "12x",
                           "99999999999999999999", "1e18"}) {
    EXPECT_FALSE(scaled_decimal(text, 3)) << text;
  }
}

TEST(Decimal, WholeNumbersMayBeQuoted) {
  EXPECT_EQ(whole_number("42"), 42);
  EXPECT_EQ(whole_number("\"42\""), 42);
  EXPECT_EQ(whole_number("-1"), -1);
  for (const char* text : {"", "\"\"", "4.2", "x", "99999999999999999999"}) {
    EXPECT_FALSE(whole_number(text)) << text;
  }
}

}  // namespace
}  // namespace fusescope::timeline
