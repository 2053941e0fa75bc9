// T4 documents hold to the published schema, version 1.0.0: kernel_tuner/schema/T4/1.0.0/
// results-schema.json and metadata-schema.json of github.com/KernelTuner/kernel_tuner (commits
// 5a48c0b4b0b1 and 85f244ecdc25). Its rules are spelled out here, one by one.

#include "sweep/exports.hpp"

#include <gtest/gtest.h>

#include <regex>
#include <set>

#include "sweep/results.hpp"
#include "sweep_fixture.hpp"

namespace fusescope::sweep {
namespace {

void expect_version(const Json& document) {
  ASSERT_TRUE(document.at("schema_version").is_string());
  EXPECT_TRUE(std::regex_match(document.at("schema_version").get<std::string>(),
                               std::regex("[0-9]{1,}.[0-9]{1,}.[0-9]{1,}")));
}

// "results": items of type object with required configuration, times, invalidity, correctness.
void expect_result(const Json& result) {
  for (const char* key : {"configuration", "times", "invalidity", "correctness"}) {
    ASSERT_TRUE(result.contains(key)) << key;
  }
  EXPECT_TRUE(result.at("configuration").is_object());
  EXPECT_TRUE(result.at("objectives").is_array());
  EXPECT_TRUE(result.at("correctness").is_number());
  const std::set<std::string> invalidities = {"timeout",     "compile",     "runtime",
                                              "correctness", "constraints", "correct"};
  EXPECT_TRUE(invalidities.contains(result.at("invalidity").get<std::string>()));
  const Json& times = result.at("times");
  EXPECT_TRUE(times.at("runtimes").is_array());
  for (const char* key : {"compilation_time", "framework", "search_algorithm", "validation"}) {
    EXPECT_TRUE(times.at(key).is_number()) << key;
  }
  ASSERT_TRUE(result.at("measurements").is_array());
  for (const Json& measurement : result.at("measurements")) {
    EXPECT_TRUE(measurement.at("name").is_string());
    EXPECT_TRUE(measurement.at("unit").is_string());
    const Json& value = measurement.at("value");
    EXPECT_TRUE(value.is_number() || value.is_string() || value.is_array());
  }
}

std::vector<Trial> one_of_each_verdict() {
  std::vector<Trial> trials;
  for (int verdict = 0; verdict < kVerdicts; ++verdict) {
    Trial trial;
    trial.id = verdict;
    trial.config.dispatch_comm_sms = verdict + 1;
    trial.verdict = static_cast<Verdict>(verdict);
    if (trial.verdict == Verdict::ok) {
      trial.wall_us = {1000, 1002, 1004};
      trial.seconds = 0.01;
      trial.source = "measured on a test";
      set_medians(trial);
    } else {
      trial.reason = "because";
    }
    trials.push_back(trial);
  }
  Trial rung = trials[0];
  rung.kind = TrialKind::rung;
  rung.label = "serial";
  trials.push_back(rung);
  return trials;
}

TEST(T4, ResultsHoldToTheSchema) {
  const Json document = to_t4(latest(one_of_each_verdict()));
  expect_version(document);
  ASSERT_TRUE(document.at("results").is_array());
  ASSERT_EQ(document.at("results").size(), static_cast<std::size_t>(kVerdicts));  // no rung
  for (const Json& result : document.at("results")) {
    expect_result(result);
  }
  const Json& ok = document.at("results").at(0);
  EXPECT_EQ(ok.at("invalidity"), "correct");
  EXPECT_EQ(ok.at("correctness"), 1);
  EXPECT_EQ(ok.at("objectives"), Json::array({"wall_us"}));
  EXPECT_EQ(ok.at("times").at("runtimes"), Json::array({1.0, 1.002, 1.004}));
  EXPECT_EQ(ok.at("measurements").at(0).at("value"), 1002);
  EXPECT_EQ(ok.at("configuration").at("dispatch_comm_sms"), 1);
}

TEST(T4, SimulatedWallsAreNamedSo) {
  std::vector<Trial> trials = one_of_each_verdict();
  trials[0].source = "simulated on a test";
  EXPECT_EQ(to_t4(latest(trials)).at("results").at(0).at("objectives"),
            Json::array({"simulated_wall_us"}));
}

// Walls with and without a rest before each iteration are not one thing.
TEST(T4, MetadataHasTheRestOfMeasuredIterations) {
  const auto rest = [](const LogHeader& header) {
    const Json metadata = to_t4_metadata(header).at("metadata");
    return metadata.at("environment").at("device_query").value("rest_ms", 0);
  };
  Json document = test::small_sweep_document();
  document["measure"]["rest_ms"] = 10;
  LogHeader header = test::small_header(parse_sweep_config(document, "small.json"));
  EXPECT_EQ(rest(header), 10);
  header.engine = "sim";
  EXPECT_EQ(rest(header), 0);
  EXPECT_EQ(rest(test::small_header()), 0);
}

TEST(T4, MetadataHoldsToTheSchema) {
  const Json document = to_t4_metadata(test::small_header());
  expect_version(document);
  const Json& metadata = document.at("metadata");
  EXPECT_TRUE(metadata.at("hardware").at("hardware_description").is_array());
  EXPECT_TRUE(metadata.at("hardware").at("operating_system").is_string());
  EXPECT_TRUE(metadata.at("environment").at("device_query").is_object());
  EXPECT_TRUE(metadata.at("environment").at("requirements").is_array());
}

}  // namespace
}  // namespace fusescope::sweep
