// fusescope attribute --against, its suggestions, and calibrate.

#include "base/file_bytes.hpp"
#include "program.hpp"

namespace fusescope::cli::test {
namespace {

class CliCompare : public ProgramTest {
 protected:
  // Runs the tiny layer on the simulator into `out`.
  void run(const std::string& out, const std::string& more) const {
    const Said said = fusescope("run --shape tiny.json --engine sim --out " + out + " " + more);
    ASSERT_EQ(said.code, 0) << said.err;
  }
};

TEST_F(CliCompare, TwoConfigsStepByStep) {
  run("a", "--set dispatch_comm_sms=24");
  run("b", "--set dispatch_comm_sms=2");
  const Said text = fusescope("attribute a --against b");
  EXPECT_EQ(text.code, 0) << text.err;
  EXPECT_NE(text.out.find("by simulations without noise"), std::string::npos) << text.out;
  const Json json = fusescope("attribute a --against b --json").json();
  const double wall = json.at("wall").at("delta_us");
  double steps = 0;
  for (const Json& step : json.at("critical_path")) {
    steps += step.at("delta_us").get<double>();
  }
  double uses = 0;
  for (const Json& use : json.at("sm_time")) {
    uses += use.at("delta_us").get<double>();
  }
  EXPECT_NEAR(steps, wall, 1e-6);
  EXPECT_NEAR(uses, wall, 1e-6);
  EXPECT_NE(wall, 0);
  EXPECT_EQ(fusescope("report a --against b --out out").code, 0);
  EXPECT_NE(read_text(folder_ / "out/report.md").find("Against the other run"), std::string::npos);
}

TEST_F(CliCompare, UnlikeProblemsAreRefusedUnlessTold) {
  run("a", "");
  run("b", "--routing uniform");
  refused("attribute a --against b", {"--against", "routings differ", "--unlike"});
  EXPECT_NE(fusescope("attribute a --against b --unlike").out.find("problems are not the same"),
            std::string::npos);
  refused("attribute a --unlike", {"--unlike"});
  refused("attribute a --against nowhere", {"nowhere"});
}

TEST_F(CliCompare, SuggestionsCarryASimulatedGainBeyondTheNoise) {
  run("a", "--set dispatch_comm_sms=1 --set tokens_per_block=1 --set all_hands=false");
  const Json advice = fusescope("attribute a --json").json().at("advice");
  ASSERT_FALSE(advice.at("suggestions").empty());
  for (const Json& each : advice.at("suggestions")) {
    EXPECT_LT(each.at("simulated").at("delta_us").get<double>(),
              -advice.at("noise_us").get<double>());
    EXPECT_TRUE(each.at("measured").is_null());
    EXPECT_NE(each.at("evidence").get<std::string>(), "");
  }
  EXPECT_FALSE(fusescope("attribute a --json --no-advice").json().contains("advice"));
}

TEST_F(CliCompare, CalibrateWritesAProfileThatSweepsTake) {
  write_text(folder_ / "wide.json", R"({"name": "wide", "shape": "tiny.json",
    "routing": "uniform", "engine": "sim", "profile": "h200-nvlink",
    "axes": {"dispatch_comm_sms": [2, 8, 16, 24], "tokens_per_block": [2, 4, 8]}})");
  ASSERT_EQ(fusescope("sweep wide.json --out s").code, 0);
  const Said said = fusescope("calibrate s --profile rtx-pro-5000-pcie5 --out fitted.json --json");
  ASSERT_EQ(said.code, 0) << said.err;
  const Json fit = said.json();
  EXPECT_LT(fit.at("after").at("median_absolute_error").get<double>(),
            fit.at("before").at("median_absolute_error").get<double>());
  ASSERT_FALSE(fit.at("numbers").empty());
  const Json profile = Json::parse(read_text(folder_ / "fitted.json"));
  const Json number =
      profile.at("numbers").at(fit.at("numbers").at(0).at("name").get<std::string>());
  EXPECT_EQ(number.at("provenance"), "fitted");
  EXPECT_NE(number.at("source").get<std::string>().find("sweep \"wide\""), std::string::npos);
  EXPECT_EQ(fusescope("run --shape tiny.json --engine sim --profile fitted.json").code, 0);
  refused("calibrate s --out fitted.json", {"fitted.json", "exists"});
  refused("calibrate nowhere --out new.json", {"nowhere", "trials.jsonl"});
  refused("calibrate s --out new.json --numbers sm_stores", {"sm_stores", "sm_store"});
}

// A recorded run of two H200s as it is kept in the repository, and the same with a rest in its run.json.
TEST_F(CliCompare, RunsUnderAnotherLoadAreToldApart) {
  namespace fs = std::filesystem;
  const fs::path kept = fs::path(FUSESCOPE_TEST_SOURCE_DIR) / "reports/h200-x2-timelines/split";
  Json document = Json::parse(read_text(kept / "run.json"));
  ASSERT_FALSE(document["measured"].contains("rest_ms"));
  for (const char* folder : {"plain", "rested", "walls"}) {
    fs::create_directory(folder_ / folder);
    if (std::string(folder) != "walls") {
      fs::copy(kept / "timeline.fst", folder_ / folder / "timeline.fst");
    }
    write_text(folder_ / folder / "run.json", document.dump());
    document["measured"]["rest_ms"] = 10;
  }
  const std::string rest = "each iteration after a rest of 10 ms";
  const Json json = fusescope("attribute rested --against plain --json").json();
  EXPECT_NE(json.at("caveats").dump().find("rested was measured with " + rest +
                                           ", plain with iterations back to back"),
            std::string::npos)
      << json.at("caveats");
  EXPECT_EQ(json.at("a").at("sampling"), rest);
  EXPECT_EQ(json.at("b").at("sampling"), "iterations back to back");
  EXPECT_EQ(fusescope("attribute rested --against rested").out.find("was measured with"),
            std::string::npos);

  for (const auto& [folder, sampling] : std::map<std::string, std::string>{
           {"plain", "iterations back to back"}, {"rested", rest}, {"walls", rest}}) {
    ASSERT_EQ(fusescope("report " + folder).code, 0) << folder;
    const std::string report = read_text(folder_ / folder / "report.md");
    EXPECT_NE(report.find("Every time in this report was measured on 2 x NVIDIA H200, " + sampling),
              std::string::npos)
        << report;
    EXPECT_NE(report.find("| sampled | " + sampling + " |"), std::string::npos) << report;
  }
  document["measured"]["rest_ms"] = "long";
  write_text(folder_ / "rested/run.json", document.dump());
  refused("report rested", {"rested/run.json: /measured/rest_ms: \"long\" is not an integer"});
}

// The sweep of 600 configs on two H200s, as it is kept in the repository.
class CliStoredSweep : public CliCompare {
 protected:
  CliStoredSweep() {
    std::filesystem::create_directory(folder_ / "stored");
    const std::string kept = std::string(FUSESCOPE_TEST_SOURCE_DIR) + "/reports/h200-x2-sweep/";
    std::filesystem::copy(kept + "sweep.json", folder_ / "stored/sweep.json");
    write_text(folder_ / "stored/trials.jsonl", read_file_bytes(kept + "trials.jsonl.gz"));
  }
  void rest_before_each_iteration() const {
    const std::string log = read_text(folder_ / "stored/trials.jsonl");
    const std::size_t end = log.find('\n');
    auto header = nlohmann::ordered_json::parse(log.substr(0, end));
    header["identity"]["measure"]["rest_ms"] = 10;
    write_text(folder_ / "stored/trials.jsonl", header.dump() + log.substr(end));
  }
};

TEST_F(CliStoredSweep, ReportSaysWhatEachKnobIsWorth) {
  ASSERT_EQ(fusescope("report stored -o out").code, 0);
  const std::string report = read_text(folder_ / "out/report.md");
  EXPECT_NE(report.find("## Knobs"), std::string::npos);
  // The third finalist is the first with jobs by token: 790.2 against 784.5 us.
  const std::size_t row = report.find("job_order by_ready → by_token");
  ASSERT_NE(row, std::string::npos);
  EXPECT_NE(report.substr(row, 100).find("+5.7"), std::string::npos) << report.substr(row, 100);
  EXPECT_EQ(report.find(" another "), std::string::npos);
  EXPECT_NE(report.find("| sampled | iterations back to back |"), std::string::npos);
}

TEST_F(CliStoredSweep, ReportSaysHowItsIterationsRested) {
  rest_before_each_iteration();
  ASSERT_EQ(fusescope("report stored -o out").code, 0);
  EXPECT_NE(read_text(folder_ / "out/report.md")
                .find("| sampled | each iteration after a rest of 10 ms |"),
            std::string::npos);
}

TEST_F(CliStoredSweep, SuggestionsForARecordedRunCarryWhatTheSweepMeasured) {
  const std::string split =
      std::string(FUSESCOPE_TEST_SOURCE_DIR) + "/reports/h200-x2-timelines/split";
  const Said said = fusescope("attribute '" + split + "' --sweep stored --json");
  ASSERT_EQ(said.code, 0) << said.err;
  const Json advice = said.json().at("advice");
  int measured = 0;
  for (const char* list : {"suggestions", "refuted"}) {
    for (const Json& each : advice.at(list)) {
      measured += each.at("measured").is_null() ? 0 : 1;
    }
  }
  EXPECT_GE(measured, 2);
  EXPECT_EQ(said.out.find("was measured with"), std::string::npos) << advice.at("notes");
  rest_before_each_iteration();
  const Json rested = fusescope("attribute '" + split + "' --sweep stored --json").json();
  EXPECT_NE(rested.at("advice").at("notes").dump().find(
                "was measured with each iteration after a rest of 10 ms, this run with iterations "
                "back to back"),
            std::string::npos)
      << rested.at("advice").at("notes");
}

TEST_F(CliStoredSweep, CalibrationPredictsTheOtherHalf) {
  const std::string timelines =
      std::string(FUSESCOPE_TEST_SOURCE_DIR) + "/reports/h200-x2-timelines/";
  const Said said = fusescope(
      "calibrate stored --out fitted.json --json --fit-configs 24 --evaluations 40 --recorded '" +
      timelines + "fetch-first.fst' '" + timelines + "split'");
  ASSERT_EQ(said.code, 0) << said.err;
  const Json fit = said.json();
  EXPECT_EQ(fit.at("configs"), 600);
  EXPECT_EQ(fit.at("left_out"), 0);
  EXPECT_LE(fit.at("after").at("median_absolute_error").get<double>(), 0.08);
  EXPECT_GE(fit.at("after").at("rank_correlation").get<double>(), 0.9);
  EXPECT_EQ(fit.at("timelines"), 2);
  EXPECT_GE(fit.at("steps").size(), 12U);
}

}  // namespace
}  // namespace fusescope::cli::test
