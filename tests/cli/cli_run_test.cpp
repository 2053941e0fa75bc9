#include "program.hpp"

namespace fusescope::cli {
namespace {

using RunCommand = test::ProgramTest;

TEST_F(RunCommand, PrintsWallStepsAndThatItIsSimulated) {
  const test::Said said = fusescope("run --shape tiny.json --routing zipf:1.0 --engine sim");
  EXPECT_EQ(said.code, 0) << said.err;
  EXPECT_EQ(said.err, "");
  for (const char* part : {"tiny (R=2 T=64", "simulated on rtx-pro-5000-pcie5", "wall ",
                           "critical path", "GEMM 1", "exposed", "SM time"}) {
    EXPECT_NE(said.out.find(part), std::string::npos) << said.out << "lacks " << part;
  }
}

TEST_F(RunCommand, JsonIsTheRunFile) {
  const test::Said said =
      fusescope("run --shape tiny.json --engine sim --set dispatch_comm_sms=8 --json --out r");
  ASSERT_EQ(said.code, 0) << said.err;
  EXPECT_EQ(said.out, test::read_text(folder_ / "r/run.json"));
  const Json run = said.json();
  EXPECT_EQ(run["provenance"], "simulated");
  EXPECT_EQ(run["config"]["dispatch_comm_sms"], 8);
  EXPECT_GT(run["wall_us"]["median"].get<double>(), 0);
  EXPECT_EQ(
      run["command"],
      "fusescope run --shape tiny.json --engine sim --set dispatch_comm_sms=8 --json --out r");
  long long steps = 0;
  for (const Json& step : run["attribution"]["critical_path"]["steps"]) {
    steps += step["ns"].get<long long>();
  }
  EXPECT_EQ(steps, run["attribution"]["wall_ns"].get<long long>());
}

TEST_F(RunCommand, ItsFolderServesTheOtherCommands) {
  ASSERT_EQ(fusescope("run --shape tiny.json --engine sim --out r").code, 0);
  EXPECT_TRUE(std::filesystem::exists(folder_ / "r/timeline.fst"));

  const test::Said text = fusescope("attribute r");
  EXPECT_EQ(text.code, 0) << text.err;
  EXPECT_NE(text.out.find("critical path"), std::string::npos);
  EXPECT_EQ(fusescope("attribute r/timeline.fst").out, text.out);
  EXPECT_GT(fusescope("attribute r --json").json()["wall_ns"].get<long long>(), 0);

  EXPECT_EQ(fusescope("timeline r -o r.pftrace").code, 0);
  EXPECT_GT(std::filesystem::file_size(folder_ / "r.pftrace"), 1000u);
  EXPECT_EQ(fusescope("timeline r --format chrome -o chrome.json").code, 0);
  EXPECT_TRUE(Json::accept(test::read_text(folder_ / "chrome.json")));

  const test::Said report = fusescope("report r -o r-report");
  EXPECT_EQ(report.code, 0) << report.err;
  EXPECT_TRUE(std::filesystem::exists(folder_ / "r-report/report.html"));

  Json stored = Json::parse(test::read_text(folder_ / "r/run.json"));
  stored["fusescope"] = "fusescope 0.0.1 (an earlier one)";
  test::write_text(folder_ / "r/run.json", stored.dump());
  ASSERT_EQ(fusescope("report r -o later").code, 0);
  const std::string later = test::read_text(folder_ / "later/report.md");
  EXPECT_NE(later.find("| made by | fusescope 0.0.1 (an earlier one) |"), std::string::npos);
  EXPECT_NE(later.find("| report by | fusescope "), std::string::npos);
}

TEST_F(RunCommand, RungsAreStoredAndReadAgain) {
  const test::Said run = fusescope("run --shape tiny.json --engine sim --rungs --out r");
  ASSERT_EQ(run.code, 0) << run.err;
  const Json rungs = Json::parse(test::read_text(folder_ / "r/run.json"))["rungs"];
  EXPECT_EQ(rungs["samples_us"].size(), 6u);
  double sum = rungs["walls_us"]["compute only, all SMs"]["us"].get<double>();
  for (const auto& [cost, estimate] : rungs["costs_us"].items()) {
    sum += estimate["us"].get<double>();
  }
  EXPECT_NEAR(sum, rungs["walls_us"]["full layer"]["us"].get<double>(), 1e-6);

  const test::Said attributed = fusescope("attribute r");
  EXPECT_EQ(attributed.code, 0) << attributed.err;
  for (const char* part : {"SM tax", "contention", "arrival limit", "ordering loss", "+ tail",
                           "exposed communication", "wait accounting"}) {
    EXPECT_NE(run.out.find(part), std::string::npos) << run.out << "lacks " << part;
    EXPECT_NE(attributed.out.find(part), std::string::npos) << attributed.out << "lacks " << part;
  }
  const Json again = fusescope("attribute r/timeline.fst --json").json();
  EXPECT_EQ(again["rungs"]["costs_us"], rungs["costs_us"]);
  EXPECT_EQ(again["exposed_communication"]["views"].size(), 3u);
  EXPECT_EQ(fusescope("report r -o r-report").code, 0);
  EXPECT_NE(test::read_text(folder_ / "r-report/report.md").find("Counterfactual rungs"),
            std::string::npos);
}

TEST_F(RunCommand, RungsOfAConfigThatHasNoneAreRefused) {
  const test::Said serial =
      fusescope("run --shape tiny.json --engine sim --rungs --set form=serial");
  EXPECT_EQ(serial.code, 2);
  EXPECT_NE(serial.err.find("serial layer has no cost"), std::string::npos) << serial.err;
}

TEST_F(RunCommand, ARepeatReplacesItsFilesAndIsTheSame) {
  ASSERT_EQ(fusescope("run --shape tiny.json --engine sim --out r").code, 0);
  const std::string timeline = test::read_text(folder_ / "r/timeline.fst");
  ASSERT_EQ(fusescope("run --shape tiny.json --engine sim --out r").code, 0);
  EXPECT_EQ(test::read_text(folder_ / "r/timeline.fst"), timeline);
}

TEST_F(RunCommand, TakesTheKnobsOfAnEarlierRun) {
  ASSERT_EQ(fusescope("run --shape tiny.json --engine sim --set tokens_per_block=4 --out r").code,
            0);
  const test::Said said = fusescope(
      "run --shape tiny.json --engine sim --config r/run.json --set combine_comm_sms=8 --json");
  ASSERT_EQ(said.code, 0) << said.err;
  EXPECT_EQ(said.json()["config"]["tokens_per_block"], 4);
  EXPECT_EQ(said.json()["config"]["combine_comm_sms"], 8);
}

TEST_F(RunCommand, WithoutATraceThereIsNoAttribution) {
  const test::Said said = fusescope("run --shape tiny.json --engine sim --no-trace --json --out r");
  ASSERT_EQ(said.code, 0) << said.err;
  EXPECT_FALSE(said.json().contains("attribution"));
  EXPECT_FALSE(std::filesystem::exists(folder_ / "r/timeline.fst"));
}

TEST_F(RunCommand, TheSerialLayerRuns) {
  const test::Said said = fusescope("run --shape tiny.json --engine sim --set form=serial");
  EXPECT_EQ(said.code, 0) << said.err;
  EXPECT_NE(said.out.find("all-gather"), std::string::npos) << said.out;
}

TEST_F(RunCommand, ASimulationDoesNotRest) {
  const std::string run = "run --shape tiny.json --engine sim --json ";
  const Json rested = fusescope(run + "--rest-ms 10").json();
  const Json plain = fusescope(run).json();
  EXPECT_EQ(rested["wall_us"], plain["wall_us"]);
  EXPECT_EQ(rested.dump().find("rest_ms"), std::string::npos);
  EXPECT_EQ(fusescope("run --shape tiny.json --engine sim --rest-ms 10").out.find("a rest of"),
            std::string::npos);
}

}  // namespace
}  // namespace fusescope::cli
