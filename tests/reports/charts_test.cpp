#include <gtest/gtest.h>

#include "base/error.hpp"
#include "reports/gnuplot.hpp"
#include "reports/report.hpp"
#include "synthetic.hpp"

namespace fusescope::reports {
namespace {

TEST(Charts, AreDrawnWithTheirWordAndNames) {
  if (find_gnuplot("").empty()) {
    GTEST_SKIP() << "gnuplot is not installed";
  }
  ReportInput input = synthetic_input();
  input.ladder.steps[1].name = "it's <fused> & \"unordered\" {a}_b";
  const Charts charts = draw_charts(input);
  EXPECT_EQ(charts.missing, "");
  for (const char* key : {"ladder", "steps", "path", "accounting"}) {
    ASSERT_TRUE(charts.svg.contains(key)) << key;
    EXPECT_NE(charts.svg.at(key).find("simulated"), std::string::npos) << key;
  }
  EXPECT_NE(charts.svg.at("ladder").find("it's &lt;fused> &amp; \"unordered\" {a}_b"),
            std::string::npos);
  EXPECT_NE(draw_summary_svg(input).find("</svg>"), std::string::npos);
  EXPECT_FALSE(charts.svg.contains("links"));
  const Charts three = draw_charts(synthetic_input(3));
  ASSERT_TRUE(three.svg.contains("links"));
  EXPECT_NE(three.svg.at("links").find("Rows on the way from each rank, simulated"),
            std::string::npos);
  EXPECT_NE(three.svg.at("links").find("Rows on the way to each rank, simulated"),
            std::string::npos);
}

TEST(Charts, WithoutGnuplotAreMissingInWords) {
  const Charts charts = draw_charts(synthetic_input(), "/nowhere/gnuplot");
  EXPECT_TRUE(charts.svg.empty());
  EXPECT_NE(charts.missing.find("gnuplot was not found"), std::string::npos);
  EXPECT_THROW(draw_summary_svg(synthetic_input(), "/nowhere/gnuplot"), InputError);
}

TEST(Charts, AProgramThatDrawsNothingIsAFailureWithItsName) {
  try {
    draw_svg({Panel{}}, "/bin/false");
    FAIL() << "no exception";
  } catch (const CheckFailure& failure) {
    EXPECT_NE(std::string(failure.what()).find("/bin/false"), std::string::npos);
  }
}

}  // namespace
}  // namespace fusescope::reports
