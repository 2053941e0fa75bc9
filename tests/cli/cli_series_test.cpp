// fusescope run --across, and the report of what it leaves.

#include "program.hpp"

namespace fusescope::cli::test {
namespace {

using CliSeries = ProgramTest;

TEST_F(CliSeries, RungsSideBySide) {
  const Said said = fusescope(
      "run --shape tiny.json --engine sim --profile h200-nvlink --rungs "
      "--across dispatch_comm_sms=4,16,100 --out s");
  ASSERT_EQ(said.code, 0) << said.err;
  EXPECT_NE(said.out.find("+ SM tax"), std::string::npos) << said.out;
  EXPECT_NE(said.out.find("waves of dispatch_gemm"), std::string::npos) << said.out;
  for (const char* run :
       {"s/dispatch_comm_sms-4", "s/dispatch_comm_sms-16", "s/dispatch_comm_sms-100"}) {
    const Json rungs = Json::parse(read_text(folder_ / run / "run.json")).at("rungs");
    EXPECT_TRUE(rungs.at("telescoping").at("agrees").get<bool>());
    EXPECT_EQ(rungs.at("telescoping").at("apart_us"), 0);  // the simulation has no noise
    EXPECT_EQ(fusescope(std::string("report ") + run + " -o r").code, 0);
  }
  ASSERT_EQ(fusescope("report s").code, 0);
  const std::string report = read_text(folder_ / "s/report.md");
  for (const char* part : {"SM tax", "contention", "waiting", "waves of dispatch\\_gemm",
                           "(simulated)", "The rungs sum to the run's own wall exactly"}) {
    EXPECT_NE(report.find(part), std::string::npos) << part << "\n" << report;
  }
  EXPECT_NE(report.find("**100**"), std::string::npos) << report;
}

TEST_F(CliSeries, WhatCannotBeRunIsRefusedBeforeAnythingIs) {
  const std::string run = "run --shape tiny.json --engine sim --rungs --out s --across ";
  refused(run + "dispatch_comm_sms=4", {"--across", "two values"});
  refused(run + "dispatch_comm_sm=4,8", {"dispatch_comm_sms"});
  refused(run + "dispatch_comm_sms=4,many", {"many"});
  refused(run + "dispatch_comm_sms=4,500", {"dispatch_comm_sms=500", "SM"});
  EXPECT_FALSE(std::filesystem::exists(folder_ / "s"));
  EXPECT_NE(fusescope("run --shape tiny.json --across dispatch_comm_sms=4,8").code, 0);
}

}  // namespace
}  // namespace fusescope::cli::test
