#include "reports/table.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>

#include "reports/sections.hpp"
#include "synthetic.hpp"

namespace fusescope::reports {
namespace {

// "1,234.567" -> 1234567
std::int64_t nanoseconds(const std::string& text) {
  std::string digits;
  for (const char c : text) {
    if (c >= '0' && c <= '9') {
      digits += c;
    }
  }
  return std::atoll(digits.c_str());
}

TEST(Tables, PathSumsToTheWallExactlyAsPrinted) {
  const ReportInput input = synthetic_input();
  const Table table = path_table(*input.chosen);
  std::int64_t sum = 0;
  std::int64_t exposed = 0;
  for (const auto& row : table.rows) {
    sum += nanoseconds(row[1].text);
    exposed += nanoseconds(row[3].text);
  }
  EXPECT_EQ(sum, input.chosen->timeline.wall_ns());
  EXPECT_EQ(nanoseconds(table.total[1].text), input.chosen->timeline.wall_ns());
  EXPECT_EQ(exposed, input.chosen->attribution.path.exposed_communication_ns());
}

TEST(Tables, AccountingRowsSumToTheAreaAsPrinted) {
  const ReportInput input = synthetic_input();
  const Table table = accounting_table(*input.chosen);
  const auto& ranks = input.chosen->attribution.accounting.ranks;
  ASSERT_EQ(table.columns.size(), ranks.size() + 3);
  for (std::size_t r = 0; r < ranks.size(); ++r) {
    EXPECT_NEAR(static_cast<double>(nanoseconds(table.total[r + 1].text)) * 100,
                static_cast<double>(ranks[r].area_ns), 50);
  }
  EXPECT_EQ(table.total.back().text, "100.0%");
}

TEST(Tables, RolesAndRanksAreTheSameArea) {
  const ReportInput input = synthetic_input();
  EXPECT_EQ(role_table(*input.chosen).total.back().text,
            accounting_table(*input.chosen)
                .total[input.chosen->attribution.accounting.ranks.size() + 1]
                .text);
}

TEST(Tables, BlameAddsUpToAllGateWaits) {
  const ReportInput input = synthetic_input();
  const Table table = blame_table(*input.chosen);
  std::int64_t all = 0;
  int blocks = 0;
  for (const auto& row : table.rows) {
    all += nanoseconds(row[4].text);
    blocks += std::atoi(row[3].text.c_str());
    EXPECT_EQ(nanoseconds(row[8].text) + nanoseconds(row[9].text) + nanoseconds(row[10].text),
              nanoseconds(row[4].text));
    ASSERT_TRUE(row.back().show);
    EXPECT_GT(row.back().show->end_ns, row.back().show->begin_ns);
    EXPECT_TRUE(row.back().show->gate);
  }
  std::int64_t waited = 0;
  for (const analysis::GateBlame& gate : input.chosen->attribution.accounting.gates) {
    waited += gate.wait_ns;
  }
  EXPECT_EQ(all, waited);
  EXPECT_EQ(blocks, static_cast<int>(input.chosen->attribution.accounting.gates.size()));
}

TEST(Tables, StepColumnsSumToTheirWalls) {
  const ReportInput input = synthetic_input();
  const Findings findings = find(input);
  const StepRows rows = step_rows(input, findings);
  EXPECT_TRUE(rows.trials.back()->serial);
  for (std::size_t i = 0; i < rows.trials.size(); ++i) {
    double sum = 0;
    for (std::size_t s = 0; s < rows.steps.size(); ++s) {
      sum += rows.at(i, s);
    }
    EXPECT_NEAR(sum, rows.trials[i]->timeline_wall_us, 1e-9);
  }
}

TEST(Tables, ExposureOfWhatWasNotRecordedIsNotZero) {
  ReportInput input = synthetic_input();
  ReportTrial& recorded = input.trials[0];
  recorded.exposed_us = 0;
  ReportTrial& timed_only = input.trials[1];
  timed_only.steps_us.clear();
  timed_only.timeline_wall_us = timed_only.exposed_us = 0;
  const Findings findings = find(input);
  const Table table = top_table(input, findings);
  ASSERT_EQ(table.columns.back().name, "exposed [µs]");
  const auto shown = [&](const ReportTrial& trial) {
    const auto place = std::find(findings.ranked.begin(), findings.ranked.end(), &trial);
    return table.rows.at(static_cast<std::size_t>(place - findings.ranked.begin())).back().text;
  };
  EXPECT_EQ(shown(recorded), "0.0");
  EXPECT_EQ(shown(timed_only), "-");
  const std::vector<const ReportTrial*> charted = step_rows(input, findings).trials;
  EXPECT_EQ(std::count(charted.begin(), charted.end(), &timed_only), 0);
}

TEST(Tables, StripCoversTheWallWithoutGaps) {
  const ReportInput input = synthetic_input();
  for (const int columns : {1, 7, 1000}) {
    const auto strip = path_strip(*input.chosen, columns);
    ASSERT_FALSE(strip.empty());
    EXPECT_DOUBLE_EQ(strip.front().begin, 0);
    EXPECT_DOUBLE_EQ(strip.back().end, 1);
    for (std::size_t i = 1; i < strip.size(); ++i) {
      EXPECT_DOUBLE_EQ(strip[i].begin, strip[i - 1].end);
      EXPECT_NE(strip[i].step, strip[i - 1].step);
    }
  }
}

TEST(Tables, FittedFiguresAreMarked) {
  const Table table = published_table(synthetic_input());
  EXPECT_EQ(table.rows[0][4].text, "fitted: proves nothing");
  EXPECT_EQ(table.rows[1][4].text, "prediction");
  EXPECT_EQ(table.rows[1][3].text, "\u22124.6 points");
  EXPECT_EQ(table.rows[2][2].text, "not obtained");
}

TEST(Tables, MarkdownRowsKeepTheirColumnsWhateverTheTextIs) {
  Table table;
  table.columns = {{"a"}, {"b|c", true}};
  table.rows = {{"x|y", "1\n2"}};
  table.rows[0][0].code = true;
  EXPECT_EQ(to_markdown(table), "| a | b\\|c |\n|---|---:|\n| x\\|y | 1 2 |\n");
}

TEST(Tables, BothFoldWhatIsLong) {
  Table table;
  table.columns = {{"n"}};
  table.rows = {{"1"}, {"2"}, {"3"}};
  table.shown = 1;
  EXPECT_NE(to_html(table).find("2 more rows"), std::string::npos);
  EXPECT_NE(to_markdown(table).find("<summary>2 more rows</summary>\n\n| n |\n|---|\n| 2 |\n| 3 |"),
            std::string::npos)
      << to_markdown(table);
}

}  // namespace
}  // namespace fusescope::reports
