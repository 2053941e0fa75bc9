#include "reports/format.hpp"

#include <gtest/gtest.h>

namespace fusescope::reports {
namespace {

TEST(Format, SeparatesThousandsAndKeepsSensibleDigits) {
  EXPECT_EQ(us(1234567.89), "1,234,567.9");
  EXPECT_EQ(us(0.04), "0.0");
  EXPECT_EQ(us_exact(1234567), "1,234.567");
  EXPECT_EQ(us_exact(5), "0.005");
  EXPECT_EQ(count(16384), "16,384");
  EXPECT_EQ(number(0.004), "0.004");
  EXPECT_EQ(number(1234.5), "1,234");
}

TEST(Format, SignsAreTrueMinusesAndZeroHasNone) {
  EXPECT_EQ(signed_percent(0.123), "+12.3%");
  EXPECT_EQ(signed_percent(-0.2), "\u221220.0%");
  EXPECT_EQ(signed_us(-0.01), "0.0");
  EXPECT_EQ(us_exact(-1500), "\u22121.500");
}

TEST(Format, EscapesForeignText) {
  EXPECT_EQ(escape_html("<b a=\"1\" b='2'>&"), "&lt;b a=&quot;1&quot; b=&#39;2&#39;&gt;&amp;");
  EXPECT_EQ(escape_markdown("a|b_c*<i>\n`x`[y](z)"), "a\\|b\\_c\\*&lt;i&gt; \\`x\\`\\[y\\](z)");
}

TEST(Format, Base64HasThePaddingOfTheStandard) {
  EXPECT_EQ(base64(""), "");
  EXPECT_EQ(base64("f"), "Zg==");
  EXPECT_EQ(base64("fo"), "Zm8=");
  EXPECT_EQ(base64("foobar"), "Zm9vYmFy");
  EXPECT_EQ(base64(std::string_view("\xff\x00\xfe", 3)), "/wD+");
}

}  // namespace
}  // namespace fusescope::reports
