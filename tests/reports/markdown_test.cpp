#include <gtest/gtest.h>

#include <sstream>

#include "reports/report.hpp"
#include "synthetic.hpp"

namespace fusescope::reports {
namespace {

Charts drawn() {
  Charts charts;
  for (const char* key : {"ladder", "steps", "path", "accounting"}) {
    charts.svg[key] = "<svg/>";
  }
  return charts;
}

TEST(Markdown, HasEverySectionAndEachWithNumbersSaysSimulated) {
  const std::string text = render_markdown(synthetic_input(), drawn());
  for (const char* heading :
       {"## Verdict (simulated)", "## Ladder (simulated)", "## Published figures (simulated)",
        "## Steps per config (simulated)", "## Sweep (simulated)", "## Configs (simulated)",
        "## Failures", "## Critical path (simulated)", "## Wait accounting (simulated)",
        "## Who waits for whom (simulated)", "## Provenance"}) {
    EXPECT_NE(text.find(heading), std::string::npos) << heading;
  }
  EXPECT_NE(text.find("](ladder.svg)"), std::string::npos);
}

TEST(Markdown, SaysWhoMadeTheDataAndWhoTheReportWhereThatIsAnother) {
  ReportInput input = synthetic_input();
  std::string text = render_markdown(input, drawn());
  EXPECT_NE(text.find("| made by | fusescope 0.1.0 (0123456789ab) |"), std::string::npos);
  EXPECT_NE(text.find("| report by | fusescope 0.1.0 (ba9876543210) |"), std::string::npos);
  EXPECT_NE(text.find("\nfusescope 0.1.0 (0123456789ab) · "), std::string::npos);
  input.rendered_by = input.fusescope;
  text = render_markdown(input, drawn());
  EXPECT_EQ(text.find("report by"), std::string::npos);
}

TEST(Markdown, SaysHowMeasuredTimesWereTaken) {
  ReportInput input = synthetic_input();
  EXPECT_EQ(render_markdown(input, drawn()).find("| sampled |"), std::string::npos);
  input.provenance = timeline::Provenance::measured;
  input.source = "measured on 2 x H";
  input.sampling = "each iteration after a rest of 10 ms";
  const std::string text = render_markdown(input, drawn());
  EXPECT_NE(
      text.find("Every time in this report was measured on 2 x H, each iteration after a rest "
                "of 10 ms."),
      std::string::npos);
  EXPECT_NE(text.find("| sampled | each iteration after a rest of 10 ms |"), std::string::npos);
}

TEST(Markdown, RowsBetweenGpusHaveASectionFromThreeRanksOn) {
  EXPECT_EQ(render_markdown(synthetic_input(2), drawn()).find("## Rows between GPUs"),
            std::string::npos);
  Charts charts = drawn();
  charts.svg["links"] = "<svg/>";
  const std::string text = render_markdown(synthetic_input(3), charts);
  const std::size_t at = text.find("## Rows between GPUs (simulated)");
  ASSERT_NE(at, std::string::npos);
  EXPECT_NE(text.find("](links.svg)", at), std::string::npos);
  EXPECT_NE(text.find("Ranks push in convoy", at), std::string::npos);
  EXPECT_NE(text.find("| from | rows |", at), std::string::npos);
  EXPECT_NE(text.find("| to | rows |", at), std::string::npos);
  EXPECT_EQ(text.find("rows on the way, over that span", at), std::string::npos);
}

TEST(Markdown, WithoutChartsTheTablesStandAloneAndItSaysSo) {
  Charts none;
  none.missing = "gnuplot was not found";
  const std::string text = render_markdown(synthetic_input(), none);
  EXPECT_NE(text.find("gnuplot was not found."), std::string::npos);
  EXPECT_EQ(text.find(".svg"), std::string::npos);
  EXPECT_NE(text.find("## Ladder"), std::string::npos);
}

TEST(Markdown, EveryRowOfATableHasItsColumns) {
  ReportInput input = synthetic_input();
  input.ladder.steps[2].name = "a | b \\| c";
  input.trials[12].reason = "line\nbreak | pipe";
  std::istringstream lines(render_markdown(input, drawn()));
  std::string line;
  int columns = 0;
  int rows = 0;
  while (std::getline(lines, line)) {
    if (!line.starts_with("|")) {
      columns = 0;
      continue;
    }
    int bars = 0;
    bool escaped = false;
    for (const char c : line) {
      bars += c == '|' && !escaped ? 1 : 0;
      escaped = c == '\\' && !escaped;
    }
    if (columns == 0) {
      columns = bars;
    }
    EXPECT_EQ(bars, columns) << line;
    ++rows;
  }
  EXPECT_GT(rows, 60);
}

TEST(Markdown, ForeignTextStaysText) {
  ReportInput input = synthetic_input();
  input.name = "<script>alert(1)</script>";
  input.why = "# heading\n\n[link](http://x) ![i](y)";
  const std::string text = render_markdown(input, drawn());
  EXPECT_EQ(text.find("<script"), std::string::npos);
  EXPECT_EQ(text.find("[link]("), std::string::npos);
  EXPECT_EQ(text.find("![i]("), std::string::npos);
  EXPECT_EQ(text.find("\n# heading"), std::string::npos);
}

}  // namespace
}  // namespace fusescope::reports
