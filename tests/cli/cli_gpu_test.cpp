// The program on real GPUs, driven as a user drives it. Skipped where there is none.
#include "program.hpp"

namespace fusescope::cli {
namespace {

class GpuProgram : public test::ProgramTest {
 protected:
  GpuProgram() {
    test::write_text(folder_ / "gpu.json", R"({"name": "small", "source": "a test", "ranks": 2,
      "tokens_per_rank": 96, "hidden": 512, "experts": 8, "topk": 2, "intermediate": 256})");
    test::write_text(folder_ / "gpu-sweep.json", R"({"name": "gpu", "shape": "gpu.json",
      "routing": "uniform", "engine": "cuda",
      "axes": {"dispatch_comm_sms": [0, 16], "all_hands": [true, false]},
      "measure": {"warmup": 1, "min_samples": 5, "target_rel_ci": 1, "max_seconds": 1}})");
  }
  void SetUp() override {
    const Json machine = fusescope("list devices --json").json();
    for (const Json& device : machine["devices"]) {
      usable_ += device["usable"].get<bool>() ? 1 : 0;
    }
    if (usable_ == 0) {
      GTEST_SKIP() << "needs a usable GPU: " << machine["why_none"];
    }
  }
  int usable_ = 0;
};

constexpr const char* kRun =
    "run --engine cuda --shape gpu.json --routing uniform --samples 5 --max-seconds 1 ";

TEST_F(GpuProgram, RunsAndSaysWhatItMeasured) {
  const test::Said said = fusescope(kRun);
  ASSERT_EQ(said.code, 0) << said.err;
  for (const char* part : {"measured on", "GPUs", "wall", "spread", "relative error", "SM clock",
                           "phase, us", "dispatch_gemm"}) {
    EXPECT_NE(said.out.find(part), std::string::npos) << said.out << "lacks " << part;
  }
  const test::Said json = fusescope(std::string(kRun) + "--json --out r");
  ASSERT_EQ(json.code, 0) << json.err;
  const Json run = json.json();
  EXPECT_EQ(run["provenance"], "measured");
  EXPECT_LE(run["measured"]["relative_error"].get<double>(), 6e-3);
  EXPECT_GT(run["measured"]["relative_error"].get<double>(), 0);
  EXPECT_GT(run["measured"]["sm_clock_mhz"]["median"].get<double>(), 100);
  EXPECT_FALSE(run["measured"]["phases"].empty());
}

TEST_F(GpuProgram, RecordsATimelineThatIsAttributed) {
  const test::Said said =
      fusescope(std::string(kRun) + "--json --out recorded --iteration slowest");
  ASSERT_EQ(said.code, 0) << said.out << said.err;
  const Json run = said.json();
  EXPECT_EQ(run["timeline"]["check"], "passed");
  EXPECT_EQ(run["timeline"]["dropped"], 0);
  EXPECT_NE(run["timeline"]["iteration"].get<std::string>().find("slowest"), std::string::npos);
  EXPECT_GT(run["timeline"]["median_us_with_records"].get<double>(), 0);
  EXPECT_TRUE(run.contains("attribution"));
  EXPECT_EQ(fusescope("attribute recorded --json").code, 0);
  EXPECT_EQ(fusescope("timeline recorded -o recorded.pftrace").code, 0);
  const test::Said text = fusescope(kRun);
  for (const char* part : {"recording costs", "clocks", "checked", "no record is missing"}) {
    EXPECT_NE(text.out.find(part), std::string::npos) << text.out << "lacks " << part;
  }
  const test::Said serial = fusescope(std::string(kRun) + "--set form=serial");
  EXPECT_NE(serial.out.find("no timeline: "), std::string::npos) << serial.out;
  refused(std::string(kRun) + "--iteration 4000", {"4000", "0 to "});
}

TEST_F(GpuProgram, EveryNumberOfRanksRuns) {
  for (const int ranks : {1, 2, 4, 8}) {
    for (const char* form : {"fused", "serial"}) {
      const test::Said said = fusescope(std::string(kRun) + "--ranks " + std::to_string(ranks) +
                                        " --no-trace --json --set form=" + form);
      ASSERT_EQ(said.code, 0) << ranks << " " << form << said.err;
      const Json run = said.json();
      EXPECT_EQ(run["measured"]["gpus"].size(), std::min<std::size_t>(ranks, usable_));
      EXPECT_EQ(run["source"].get<std::string>().find("co-located") != std::string::npos,
                ranks > usable_);
      EXPECT_GT(run["measured"]["sm_clock_mhz"]["median"].get<double>(), 100) << form;
      const std::string by = run["measured"]["collectives"];
      EXPECT_EQ(by.empty(), ranks == 1 || std::string(form) == "fused") << by;
      if (ranks > usable_ && !by.empty()) {
        EXPECT_NE(by.find("peer copies"), std::string::npos) << by;
      }
    }
  }
}

TEST_F(GpuProgram, CoLocatedRanksCannotHaveNccl) {
  refused(std::string(kRun) + "--ranks 16 --set form=serial --set collectives=nccl",
          {"nccl", "one GPU per rank"});
}

TEST_F(GpuProgram, NcclAndPeerCopiesAreBothRight) {
  const Json machine = fusescope("list devices --json").json();
  if (usable_ < 2 || machine["nccl"]["file"].get<std::string>().empty()) {
    GTEST_SKIP() << "needs two GPUs and NCCL";
  }
  for (const char* collectives : {"nccl", "peer_copies", "auto"}) {
    for (const char* graph : {"true", "false"}) {
      const test::Said said = fusescope(
          std::string("run --engine cuda --shape gpu.json --routing uniform --samples 5 ") +
          "--max-seconds 1 --no-trace --json --set form=serial --set graph=" + graph +
          " --set collectives=" + collectives);
      ASSERT_EQ(said.code, 0) << collectives << said.err;
      const std::string by = said.json()["measured"]["collectives"];
      EXPECT_EQ(by.starts_with("NCCL"), std::string(collectives) != "peer_copies") << by;
    }
  }
}

TEST_F(GpuProgram, ChecksItselfOnTheGpus) {
  for (const int ranks : {1, 2, 4}) {
    const test::Said said =
        fusescope("check --engine cuda --shape gpu.json --routing zipf:1.2 --ranks " +
                  std::to_string(ranks) + " --json");
    EXPECT_EQ(said.code, 0) << said.err << said.out;
    const Json json = said.json();
    EXPECT_EQ(json["passed"], true) << said.out;
    EXPECT_GE(json["checks"].size(), 8U);
  }
}

TEST_F(GpuProgram, ListsWhatThereIs) {
  const Json machine = fusescope("list devices --json").json();
  for (const Json& device : machine["devices"]) {
    EXPECT_GT(device["sms"].get<int>(), 0);
    EXPECT_GT(device["memory_bytes"].get<long long>(), 1LL << 30);
  }
  const std::size_t count = machine["devices"].size();
  EXPECT_EQ(machine["links"].size(), count * (count - 1));
  const test::Said text = fusescope("list devices");
  EXPECT_NE(text.out.find("SMs"), std::string::npos) << text.out;
}

TEST_F(GpuProgram, RefusesDevicesThatAreNotThere) {
  refused("run --engine cuda --shape gpu.json --devices 917", {"--devices", "917"});
  refused("run --engine cuda --shape gpu.json --devices 0,0", {"--devices", "twice"});
}

TEST_F(GpuProgram, SaysThatItRested) {
  const std::string rest = "each iteration after a rest of 5 ms";
  EXPECT_NE(fusescope(kRun).out.find(", iterations back to back"), std::string::npos);
  const test::Said text = fusescope(std::string(kRun) + "--rest-ms 5 --out rested");
  ASSERT_EQ(text.code, 0) << text.err;
  EXPECT_NE(text.out.find(", " + rest), std::string::npos) << text.out;
  const Json run = Json::parse(test::read_text(folder_ / "rested/run.json"));
  EXPECT_EQ(run["measured"]["rest_ms"], 5);
  ASSERT_EQ(fusescope("report rested").code, 0);
  EXPECT_NE(test::read_text(folder_ / "rested/report.md").find("| sampled | " + rest),
            std::string::npos);

  const test::Said swept = fusescope("sweep gpu-sweep.json --out s --rest-ms 5");
  ASSERT_EQ(swept.code, 0) << swept.err;
  EXPECT_NE(swept.out.find(rest), std::string::npos) << swept.out;
  const Json best = Json::parse(test::read_text(folder_ / "s/best/run.json"));
  EXPECT_EQ(best["measured"]["rest_ms"], 5);
  EXPECT_EQ(fusescope("sweep gpu-sweep.json --out s --rest-ms 5 --json").json()["rest_ms"], 5);
  refused("sweep gpu-sweep.json --out s", {"/measure/rest_ms was 5, is null"});

  const std::string tune = "tune gpu-sweep.json --trials 2 --out t --table t.json ";
  ASSERT_EQ(fusescope(tune + "--rest-ms 5").code, 0);
  const Json table = Json::parse(test::read_text(folder_ / "t.json"));
  EXPECT_EQ(table["entries"][0]["rest_ms"], 5);
}

TEST_F(GpuProgram, SweepsATinySpace) {
  const test::Said said = fusescope("sweep gpu-sweep.json --out s");
  EXPECT_EQ(said.code, 0) << said.err;
  EXPECT_GT(std::filesystem::file_size(folder_ / "s/trials.jsonl"), 100U);
}

}  // namespace
}  // namespace fusescope::cli
