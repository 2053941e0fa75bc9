// Chrome trace event JSON, parsed back.

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>
#include <string>

#include "timeline/writers.hpp"
#include "tiny_layer.hpp"
#include "trace_rules.hpp"

namespace fusescope::timeline {
namespace {

using Json = nlohmann::json;

std::string written(const Timeline& timeline) {
  std::ostringstream out;
  write_chrome(timeline, out);
  return out.str();
}

TEST(Chrome, TheTinyLayerKeepsTheRules) {
  expect_chrome_rules(tiny_layer());
}

TEST(Chrome, ALayerOfTheSeedsSizeKeepsTheRules) {
  expect_chrome_rules(tiny_layer(seed_sized()));
}

TEST(Chrome, TimesAreMicrosecondsWithThreeDecimals) {
  const std::string text = written(tiny_layer());
  const std::string slice =
      R"({"ph":"X","name":"pull","cat":"communication","pid":0,"tid":3,"ts":0.400,"dur":0.020,)"
      R"("args":{"token":0,"source_rank":0}})";
  EXPECT_NE(text.find(slice), std::string::npos) << text;
}

TEST(Chrome, TextOfAnyKindIsValidJson) {
  Timeline timeline = tiny_layer();
  timeline.meta.device = "a \"b\" \\ \n\t\x01 \xff";
  timeline.meta.command = "--x='y'";
  timeline.counters[0].name = "\"";
  timeline.counters[0].unit = "";
  const Json document = Json::parse(written(timeline));
  EXPECT_EQ(document.at("otherData").at("command"), "--x='y'");
}

TEST(Chrome, AnEmptyTimelineIsAnEmptyTrace) {
  const Json document = Json::parse(written(Timeline{}));
  EXPECT_TRUE(document.at("traceEvents").empty());
}

}  // namespace
}  // namespace fusescope::timeline
