// The page in a real browser: no console message, every chart and the timeline drawn. Skips where
// there is no Chromium (FUSESCOPE_CHROMIUM names another).

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <sstream>

#include "reports/assets.hpp"
#include "reports/report.hpp"
#include "synthetic.hpp"

namespace fusescope::reports {
namespace {

namespace fs = std::filesystem;

std::string run(const std::string& command) {
  const std::unique_ptr<FILE, int (*)(FILE*)> pipe(popen(command.c_str(), "r"), pclose);
  std::string out;
  char buffer[4096];
  std::size_t n = 0;
  while (pipe && (n = fread(buffer, 1, sizeof buffer, pipe.get())) > 0) {
    out.append(buffer, n);
  }
  return out;
}

std::string browser() {
  const char* wanted = std::getenv("FUSESCOPE_CHROMIUM");
  for (const std::string& name :
       {std::string(wanted == nullptr ? "" : wanted), std::string("chromium"),
        std::string("chromium-browser"), std::string("google-chrome")}) {
    if (!name.empty() && !run("command -v '" + name + "' 2>/dev/null").empty()) {
      return name;
    }
  }
  return "";
}

struct Loaded {
  std::string dom;
  std::string log;
};

// Frames come by the clock that timers go by: the browser's virtual time does not wait for its compositor, and
// may be over before the first frame.
std::string with_frames_by_timer(std::string page) {
  page.insert(page.find("<head>") + 6,
              "<script>window.requestAnimationFrame = (draw) => setTimeout(() => "
              "draw(performance.now()), 16);</script>");
  return page;
}

Loaded load(const std::string& program, const std::string& page, const std::string& fragment) {
  std::string pattern = (fs::path(testing::TempDir()) / "fusescope-browser-XXXXXX").string();
  const fs::path folder = ::mkdtemp(pattern.data());
  std::ofstream(folder / "report.html") << with_frames_by_timer(page);
  const std::string log = (folder / "log").string();
  Loaded loaded;
  // Two of them fit into a test's time limit.
  loaded.dom = run(
      "timeout --kill-after=5 600 '" + program +
      "' --headless --no-sandbox --disable-gpu --virtual-time-budget=10000 --window-size=1400,1000 "
      "--enable-logging=stderr --v=0 --dump-dom --user-data-dir='" +
      (folder / "profile").string() + "' 'file://" + (folder / "report.html").string() + fragment +
      "' 2>'" + log + "'");
  std::ifstream in(log);
  std::ostringstream text;
  text << in.rdbuf();
  loaded.log = text.str();
  fs::remove_all(folder);
  return loaded;
}

bool tag_is_ready(const std::string& dom, const std::string& id) {
  const std::size_t at = dom.find("id=\"" + id + "\"");
  if (at == std::string::npos) {
    return false;
  }
  const std::size_t open = dom.rfind('<', at);
  return dom.substr(open, dom.find('>', at) - open).find("data-ready=\"true\"") !=
         std::string::npos;
}

class Browser : public testing::Test {
 protected:
  void SetUp() override {
    program_ = browser();
    if (program_.empty()) {
      GTEST_SKIP() << "no chromium on this machine";
    }
  }
  std::string program_;
};

TEST_F(Browser, DrawsEverythingWithoutAConsoleMessage) {
  const ReportInput input = synthetic_input();
  const Loaded loaded = load(program_, render_html(input), "");
  EXPECT_EQ(loaded.log.find("CONSOLE"), std::string::npos) << loaded.log;
  EXPECT_NE(loaded.dom.find("data-events=\"" +
                            std::to_string(input.chosen->timeline.events.size()) + "\""),
            std::string::npos);
  EXPECT_TRUE(tag_is_ready(loaded.dom, "timeline-box"));
  EXPECT_TRUE(tag_is_ready(loaded.dom, "heatmap"));
  if (asset("chart.js").empty()) {
    GTEST_SKIP() << "this build carries no Chart.js";
  }
  for (const char* id : {"chart-ladder", "chart-steps", "chart-accounting"}) {
    EXPECT_TRUE(tag_is_ready(loaded.dom, id)) << id;
  }
}

TEST_F(Browser, StripsOfRowsBetweenGpusHaveRoom) {
  std::string page = render_html(synthetic_input(3));
  page.insert(page.rfind("</body>"),
              "<script>const strips = [...document.querySelectorAll('#links td.shades svg')];"
              "document.body.dataset.strips = strips.filter((each) => "
              "each.getBoundingClientRect().width > 200).length;</script>");
  const Loaded loaded = load(program_, page, "");
  EXPECT_EQ(loaded.log.find("CONSOLE"), std::string::npos) << loaded.log;
  EXPECT_NE(loaded.dom.find("data-strips=\"6\""), std::string::npos);
}

TEST_F(Browser, AnAddressOpensItsSpanOfTheTimeline) {
  const Loaded loaded = load(program_, render_html(synthetic_input()), "#t=20-30");
  EXPECT_EQ(loaded.log.find("CONSOLE"), std::string::npos) << loaded.log;
  EXPECT_NE(loaded.dom.find("20.00 \u2013 30.00 \u00b5s"), std::string::npos);
}

// What a reader does, by script: the page's own handlers must answer.
TEST_F(Browser, ShowButtonsKeysLegendAndThemeWork) {
  std::string page = render_html(synthetic_input());
  const std::string act =
      "<script>const seen = () => document.querySelector('.readout').textContent;"
      "let tries = 0;"
      "const start = () => {"  // the timeline's handlers come when it is drawn
      "if (!document.querySelector('#timeline-box[data-ready]')) { setTimeout(start, 50); return; }"
      "document.querySelector('#waits button.show').click();"
      "setTimeout(next, 100); };"
      "const next = () => {"
      "if (seen().startsWith('0.00') && ++tries < 30) { setTimeout(next, 100); return; }"
      "document.body.dataset.shown = seen();"
      "document.querySelector('#timeline-box .view').dispatchEvent(new KeyboardEvent('keydown', "
      "{key: '+'}));"
      "document.querySelector('.legend button').click();"
      "const axis = document.querySelector('#heatmap select');"
      "axis.selectedIndex = 2;"
      "axis.dispatchEvent(new Event('change'));"
      "document.getElementById('theme').click();"
      "setTimeout(() => { document.body.dataset.zoomed = seen(); }, 900);"
      "};"
      "setTimeout(start, 100);</script>";
  page.insert(page.rfind("</body>"), act);
  const Loaded loaded = load(program_, page, "");
  EXPECT_EQ(loaded.log.find("CONSOLE"), std::string::npos) << loaded.log;
  const auto readout = [&](const std::string& name) {
    const std::size_t at = loaded.dom.find("data-" + name + "=\"");
    return at == std::string::npos ? "" : loaded.dom.substr(at + name.size() + 7, 24);
  };
  EXPECT_NE(readout("shown"), "");
  EXPECT_FALSE(readout("shown").starts_with("0.00"));
  EXPECT_NE(readout("zoomed"), "");
  EXPECT_NE(readout("zoomed"), readout("shown"));
  EXPECT_NE(loaded.dom.find("data-theme="), std::string::npos);
}

TEST_F(Browser, AnEmptySweepAndARefusedRunLoadToo) {
  ReportInput input;
  input.name = "</script><b>empty";
  EXPECT_EQ(load(program_, render_html(input), "").log.find("CONSOLE"), std::string::npos);
  ReportInput refused = synthetic_input();
  refused.chosen->attribution = {};
  refused.chosen->attribution.refusal = "records were dropped";
  const Loaded loaded = load(program_, render_html(refused), "");
  EXPECT_EQ(loaded.log.find("CONSOLE"), std::string::npos) << loaded.log;
  EXPECT_TRUE(tag_is_ready(loaded.dom, "timeline-box"));
}

}  // namespace
}  // namespace fusescope::reports
