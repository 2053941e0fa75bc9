#include <gtest/gtest.h>

#include <string>

#include "reports/report.hpp"
#include "synthetic.hpp"

namespace fusescope::reports {
namespace {

// The page without its scripts' and style's own text.
std::string markup(const std::string& page) {
  const std::size_t style = page.find("<style>");
  const std::size_t end = page.find("</style>");
  return page.substr(0, style) + page.substr(end, page.find("<script") - end);
}

TEST(Html, HasEverySectionInOrder) {
  const std::string page = render_html(synthetic_input());
  std::size_t at = 0;
  for (const char* id : {"verdict", "ladder", "published", "steps", "sweep", "configs", "failures",
                         "accounting", "waits", "path", "timeline", "provenance"}) {
    const std::size_t found = page.find(std::string("<section id=\"") + id + "\"");
    ASSERT_NE(found, std::string::npos) << id;
    EXPECT_GT(found, at) << id;
    EXPECT_NE(page.find(std::string("href=\"#") + id + "\""), std::string::npos) << id;
    at = found;
  }
}

TEST(Html, SaysSimulatedAtEverySectionWithNumbersAndAtEveryChart) {
  const std::string page = markup(render_html(synthetic_input()));
  const std::string badge = "<span class=\"badge simulated\">simulated</span>";
  for (const char* id : {"verdict", "ladder", "published", "steps", "sweep", "configs", "path",
                         "accounting", "waits", "timeline"}) {
    const std::size_t heading = page.find(std::string("id=\"h-") + id);
    ASSERT_NE(heading, std::string::npos) << id;
    EXPECT_LT(page.find(badge, heading), page.find("</h2>", heading)) << id;
  }
  for (std::size_t at = page.find("<figcaption>"); at != std::string::npos;
       at = page.find("<figcaption>", at + 1)) {
    EXPECT_LT(page.find(badge, at), page.find("</figcaption>", at));
  }
  EXPECT_NE(page.find("none was measured"), std::string::npos);
}

TEST(Html, AMeasuredReportNeverSaysSimulated) {
  ReportInput input = synthetic_input();
  input.provenance = timeline::Provenance::measured;
  input.source = "measured on 2 x H";
  input.sampling = "iterations back to back";
  input.chosen->timeline.meta.provenance = timeline::Provenance::measured;
  input.chosen->attribution = analysis::attribute(input.chosen->timeline);
  const std::string page = markup(render_html(input));
  EXPECT_EQ(page.find("simulated"), std::string::npos);
  EXPECT_NE(page.find("<span class=\"badge measured\">measured</span>"), std::string::npos);
  EXPECT_NE(page.find("was measured on 2 x H, iterations back to back."), std::string::npos);
}

TEST(Html, ReachesForNothingOutside) {
  const std::string page = render_html(synthetic_input());
  // Chart.js names its home in a comment; nothing may load from anywhere.
  for (const char* outside : {"src=\"http", "src=\"//", "href=\"http", "href=\"//", "@import",
                              "url(http", "url(\"http", "fetch(", "XMLHttpRequest", "WebSocket"}) {
    EXPECT_EQ(page.find(outside), std::string::npos) << outside;
  }
  EXPECT_EQ(page.find("<script src"), std::string::npos);
  EXPECT_EQ(page.find("<link rel=\"stylesheet\""), std::string::npos);
  EXPECT_NE(page.find("default-src 'none'"), std::string::npos);
}

TEST(Html, ForeignTextStaysText) {
  ReportInput input = synthetic_input();
  const std::string bad = "<img src=x onerror=alert(1)></script>{{data}}&\"'";
  input.name = input.why = input.problem = input.source = input.command = input.fusescope = bad;
  input.rendered_by = bad + bad;
  input.profile = input.profile_about = bad;
  input.notes = {bad};
  input.ladder.steps[1].name = bad;
  input.ladder.steps[1].config = bad;
  input.published[0].name = bad;
  input.published[0].note = bad;
  input.profile_numbers[0].source = bad;
  input.chosen->name = bad;
  input.chosen->timeline.meta.config = bad;
  input.axes.push_back(bad);
  for (ReportTrial& trial : input.trials) {
    trial.config += bad;
    trial.reason = bad;
    trial.knobs[bad] = std::to_string(trial.id) + bad;
    trial.steps_us[bad] = 1;
  }
  const std::string page = render_html(input);
  EXPECT_EQ(page.find("<img"), std::string::npos);
  EXPECT_EQ(page.find("onerror=alert(1)></script>"), std::string::npos);
  // Each script element still ends where it should.
  const auto times = [&](const std::string& text) {
    std::size_t n = 0;
    for (std::size_t at = page.find(text); at != std::string::npos; at = page.find(text, at + 1)) {
      ++n;
    }
    return n;
  };
  EXPECT_EQ(times("<script>") + times("<script type"), times("</script>"));
}

TEST(Html, ARefusedAttributionIsSaidAndItsTablesAreLeftOut) {
  ReportInput input = synthetic_input();
  input.chosen->attribution = {};
  input.chosen->attribution.refusal = "17 records were dropped";
  const std::string page = markup(render_html(input));
  EXPECT_NE(page.find("17 records were dropped"), std::string::npos);
  EXPECT_EQ(page.find("<section id=\"accounting\""), std::string::npos);
  EXPECT_NE(page.find("<section id=\"timeline\""), std::string::npos);
}

// With two ranks no link has two users.
TEST(Html, RowsBetweenGpusAreShownByRankFromThreeRanksOn) {
  EXPECT_EQ(render_html(synthetic_input(2)).find("<section id=\"links\""), std::string::npos);
  const ReportInput input = synthetic_input(3);
  const std::string page = markup(render_html(input));
  const std::size_t at = page.find("<section id=\"links\"");
  ASSERT_NE(at, std::string::npos);
  const std::string section = page.substr(at, page.find("</section>", at) - at);
  EXPECT_NE(section.find("Ranks pull in convoy, more than half of all rows on the way from rank 0"),
            std::string::npos);
  std::size_t strips = 0;
  for (std::size_t next = section.find("<td class=\"shades\">"); next != std::string::npos;
       next = section.find("<td class=\"shades\">", next + 1)) {
    ++strips;
  }
  EXPECT_EQ(strips, 6U);  // pulls and pushes of three ranks
  EXPECT_NE(section.find("fill:var(--kind-pull)"), std::string::npos);
  EXPECT_NE(section.find("fill-opacity=\"1.00\""), std::string::npos);
}

TEST(Html, ChartsHaveATableAndALabel) {
  const std::string page = markup(render_html(synthetic_input()));
  for (std::size_t at = page.find("<canvas"); at != std::string::npos;
       at = page.find("<canvas", at + 1)) {
    const std::string tag = page.substr(at, page.find('>', at) - at);
    EXPECT_NE(tag.find("role=\"img\""), std::string::npos) << tag;
    EXPECT_NE(tag.find("aria-label=\""), std::string::npos) << tag;
    EXPECT_LT(page.find("<table", at), page.find("</section>", at)) << tag;
  }
}

}  // namespace
}  // namespace fusescope::reports
