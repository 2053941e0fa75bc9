#include <algorithm>
#include <csignal>
#include <cstdio>
#include <sstream>

#include "program.hpp"

namespace fusescope::cli {
namespace {

using Sweep = test::ProgramTest;

TEST_F(Sweep, LeavesLogTableWinnerAndReport) {
  const test::Said said = fusescope("sweep sweep.json --out s --report");
  ASSERT_EQ(said.code, 0) << said.err;
  for (const char* part : {"simulated on rtx-pro-5000-pcie5", "place", "vs best", "serial",
                           "+ pull order", "Written: s/report.html"}) {
    EXPECT_NE(said.out.find(part), std::string::npos) << said.out << "lacks " << part;
  }
  EXPECT_NE(said.err.find("trial 6/6"), std::string::npos) << said.err;
  for (const char* file : {"trials.jsonl", "trials.csv", "sweep.json", "best/run.json",
                           "best/timeline.fst", "best.pftrace", "report.html", "report.md"}) {
    EXPECT_TRUE(std::filesystem::exists(folder_ / "s" / file)) << file;
  }
  const std::string log = test::read_text(folder_ / "s/trials.jsonl");
  EXPECT_GE(std::count(log.begin(), log.end(), '\n'), 1 + 6 + 5);
  // Each trial's steps partition its iteration.
  std::size_t begin = log.find('\n') + 1;
  while (begin < log.size()) {
    const std::size_t end = log.find('\n', begin);
    const Json trial = Json::parse(log.substr(begin, end - begin));
    double sum = 0;
    for (const auto& [step, time] : trial["steps_us"].items()) {
      sum += time.get<double>();
    }
    EXPECT_NEAR(sum, trial["timeline_wall_us"].get<double>(), 1e-6);
    begin = end + 1;
  }
}

TEST_F(Sweep, JsonAgreesWithTheLog) {
  const test::Said said = fusescope("sweep sweep.json --out s --json");
  ASSERT_EQ(said.code, 0) << said.err;
  const Json result = said.json();
  EXPECT_EQ(result["ending"], "complete");
  EXPECT_EQ(result["ran"], 6);
  EXPECT_EQ(result["ok"], 6);
  EXPECT_GT(result["ladder"].size(), 4u);
  EXPECT_EQ(result["ladder"][0]["label"], "serial");
  const Json best = Json::parse(test::read_text(folder_ / "s/best/run.json"));
  EXPECT_EQ(best["config"], result["best"]["config"]);
  EXPECT_EQ(best["wall_us"]["median"], result["best"]["median_us"]);
}

// The log of a sweep whose two fastest configs were finalists, of which the second won the turns.
TEST_F(Sweep, OneBestWhereFinalistsWereTimedInTurns) {
  ASSERT_EQ(fusescope("sweep sweep.json --out s").code, 0);
  const std::string log = test::read_text(folder_ / "s/trials.jsonl");
  std::vector<Json> searched;
  std::istringstream lines(log);
  for (std::string line; std::getline(lines, line);) {
    if (Json trial = Json::parse(line); trial.value("kind", "") == "search") {
      searched.push_back(std::move(trial));
    }
  }
  ASSERT_EQ(searched.size(), 6u);
  std::sort(searched.begin(), searched.end(),
            [](const Json& a, const Json& b) { return a["median_us"] < b["median_us"]; });
  std::string turns;
  for (int turn = 0; turn < 4; ++turn) {
    Json trial = searched[turn % 2 == 0 ? 1 : 0];
    trial["id"] = turn;
    trial["kind"] = "finalist";
    trial["visit"] = turn / 2;
    const double wall = 1000 + 100 * (turn % 2);
    trial["wall_us"] = {wall - 1, wall, wall + 1};
    trial["rank_wall_us"] = Json::array();
    trial["median_us"] = trial["raw_median_us"] = wall;
    turns += trial.dump() + "\n";
  }
  test::write_text(folder_ / "s/trials.jsonl", log + turns);
  const test::Said said = fusescope("sweep sweep.json --out s --json");
  ASSERT_EQ(said.code, 0) << said.err;
  const Json best = said.json()["best"];
  EXPECT_EQ(best["config"], searched[1]["config"]);
  EXPECT_EQ(best["median_us"], 1000);
  const Json run = Json::parse(test::read_text(folder_ / "s/best/run.json"));
  EXPECT_EQ(run["config"], best["config"]);

  ASSERT_EQ(fusescope("report s").code, 0);
  const std::string report = test::read_text(folder_ / "s/report.md");
  const std::string id = std::to_string(best["id"].get<int>());
  for (const std::string& part :
       {std::string("the fastest of 2 finalists timed in turns, of 6 fused configs"),
        std::string("takes 1,000.0 µs"), "| **1** | \\#" + id + " |",
        "2 finalists timed in turns, of the 6 configs that ran (trial " + id + ")",
        std::string("The run explained below is the best config.")}) {
    EXPECT_NE(report.find(part), std::string::npos) << report.substr(0, 4000) << "lacks " << part;
  }
}

TEST_F(Sweep, GoesOnByItselfAndSaysSo) {
  ASSERT_EQ(fusescope("sweep sweep.json --out s --trials 2").code, 0);
  const test::Said more = fusescope("sweep sweep.json --out s --resume --json");
  ASSERT_EQ(more.code, 0) << more.err;
  EXPECT_NE(more.err.find("Resuming: s/trials.jsonl holds"), std::string::npos) << more.err;
  EXPECT_EQ(more.json()["found_in_log"], 2);
  EXPECT_EQ(more.json()["ran"], 4);
  const std::string log = test::read_text(folder_ / "s/trials.jsonl");
  const test::Said again = fusescope("sweep sweep.json --out s --json");
  EXPECT_EQ(again.json()["ran"], 0);
  EXPECT_EQ(test::read_text(folder_ / "s/trials.jsonl"), log);
}

TEST_F(Sweep, RepairsALogThatWasCutOffAndSaysSo) {
  ASSERT_EQ(fusescope("sweep sweep.json --out s").code, 0);
  const std::string log = test::read_text(folder_ / "s/trials.jsonl");
  test::write_text(folder_ / "s/trials.jsonl", log.substr(0, log.size() - 40));
  const test::Said said = fusescope("sweep sweep.json --out s");
  EXPECT_EQ(said.code, 0) << said.err;
  EXPECT_NE(said.err.find("cut off the last line"), std::string::npos) << said.err;
}

TEST_F(Sweep, WritesIllegalConfigsDown) {
  test::write_text(folder_ / "wide.json", R"({"name": "wide", "shape": "tiny.json",
    "engine": "sim", "axes": {"dispatch_comm_sms": [16, 500]}})");
  const test::Said said = fusescope("sweep wide.json --out s");
  EXPECT_EQ(said.code, 0) << said.err;
  EXPECT_NE(said.out.find("1 x illegal: dispatch_comm_sms 500 leaves no compute SM"),
            std::string::npos)
      << said.out;
}

// Minutes long: it is under way whenever this process comes to look at its log.
TEST_F(Sweep, AnInterruptLeavesAWholeLogAndCanGoOn) {
  test::write_text(folder_ / "long.json", R"({"name": "long", "shape": "seed-tp4",
    "engine": "sim", "axes": {"dispatch_comm_sms": [4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26],
    "combine_comm_sms": [4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26],
    "tokens_per_block": [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12],
    "pull_order": ["by_slot", "by_token"], "job_order": ["by_ready", "by_token"],
    "all_hands": [true, false]}})");
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    if (::chdir(folder_.c_str()) != 0 || std::freopen(".stderr", "w", stderr) == nullptr ||
        std::freopen(".stdout", "w", stdout) == nullptr) {
      ::_exit(99);
    }
    ::execl(FUSESCOPE_BINARY, "fusescope", "sweep", "long.json", "--out", "s", nullptr);
    ::_exit(99);
  }
  const auto logged = [&] {
    const std::string log = test::read_text(folder_ / "s/trials.jsonl");
    return std::count(log.begin(), log.end(), '\n') - 1;
  };
  int status = 0;
  while (logged() < 2) {
    ASSERT_EQ(::waitpid(child, &status, WNOHANG), 0) << test::read_text(folder_ / ".stderr");
    ::usleep(10'000);
  }
  ASSERT_EQ(::kill(child, SIGINT), 0);
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  const std::string err = test::read_text(folder_ / ".stderr");
  ASSERT_TRUE(WIFEXITED(status)) << err;
  EXPECT_EQ(WEXITSTATUS(status), 130) << err;
  EXPECT_NE(err.find("Interrupted. The log is whole"), std::string::npos) << err;
  const std::string log = test::read_text(folder_ / "s/trials.jsonl");
  EXPECT_EQ(log.back(), '\n');
  const auto found = logged();
  EXPECT_LT(found, 12 * 12 * 12 * 8);
  const test::Said more =
      fusescope("sweep long.json --out s --json --trials " + std::to_string(found + 1));
  EXPECT_EQ(more.json()["found_in_log"], found);
  EXPECT_EQ(more.json()["ran"], 1);
}

TEST_F(Sweep, ShapeAndBaseKnobsOfTheCommandLineBecomeTheSweepsOwn) {
  test::write_text(folder_ / "four.json", R"({"name": "four", "source": "a test", "ranks": 4,
      "tokens_per_rank": 32, "hidden": 256, "experts": 8, "topk": 2, "intermediate": 128})");
  const std::string options = " --shape four.json --set link_gbps=20 --set activation=fused ";
  ASSERT_EQ(fusescope("sweep" + options + "sweep.json --out s").code, 0);
  const Json stored = Json::parse(test::read_text(folder_ / "s/sweep.json"));
  EXPECT_EQ(stored["shape"]["ranks"], 4);
  EXPECT_EQ(stored["base"]["link_gbps"], 20);
  const Json best = Json::parse(test::read_text(folder_ / "s/best/run.json"));
  EXPECT_EQ(best["config"]["link_gbps"], 20);
  EXPECT_EQ(best["config"]["activation"], "fused");
  // What is stored stands alone.
  EXPECT_EQ(fusescope("sweep s/sweep.json --out s --json").json()["ran"], 0);
  refused("sweep sweep.json --out t --set dispatch_comm_sms=8",
          {"--set", "dispatch_comm_sms=8", "is an axis of this sweep"});
  refused("sweep sweep.json --out t --set link_gbsp=8", {"--set", "link_gbps"});
  refused("sweep sweep.json --out t --shape nowhere", {"--shape: ", "nowhere"});
  refused("sweep sweep.json --out t --set tokens_per_block=9999",
          {"--set: tokens_per_block=9999: "});
  refused("sweep sweep.json --out t --set gemm=mma --gemm wgmma",
          {"--set: gemm=mma: --gemm sets the same knob"});
}

// The simulator has no power limit: a rest is part of the sweep, and changes no number.
TEST_F(Sweep, TheRestOfTheCommandLineBecomesTheSweepsOwn) {
  ASSERT_EQ(fusescope("sweep sweep.json --out plain").code, 0);
  ASSERT_EQ(fusescope("sweep sweep.json --out s --rest-ms 10").code, 0);
  EXPECT_EQ(Json::parse(test::read_text(folder_ / "s/sweep.json"))["measure"]["rest_ms"], 10);
  const std::string log = test::read_text(folder_ / "s/trials.jsonl");
  EXPECT_EQ(Json::parse(log.substr(0, log.find('\n')))["identity"]["measure"]["rest_ms"], 10);
  EXPECT_EQ(fusescope("sweep s/sweep.json --out s --json").json()["ran"], 0);
  refused("sweep sweep.json --out s", {"/measure/rest_ms was 10, is null"});

  const Json rested = fusescope("sweep sweep.json --out s --rest-ms 10 --json").json();
  const Json plain = fusescope("sweep sweep.json --out plain --json").json();
  EXPECT_EQ(rested["best"]["median_us"], plain["best"]["median_us"]);
  EXPECT_FALSE(rested.contains("rest_ms"));
  EXPECT_EQ(test::read_text(folder_ / "s/best/run.json").find("rest_ms"), std::string::npos);
  ASSERT_EQ(fusescope("report s").code, 0);
  EXPECT_EQ(test::read_text(folder_ / "s/report.md").find("| sampled |"), std::string::npos);

  Json broken = Json::parse(test::read_text(folder_ / "sweep.json"));
  broken["measure"] = 3;
  test::write_text(folder_ / "broken.json", broken.dump());
  refused("sweep broken.json --out t --rest-ms 10", {"broken.json: /measure: "});
}

}  // namespace
}  // namespace fusescope::cli
