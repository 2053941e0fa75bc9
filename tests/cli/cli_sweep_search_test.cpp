// Searching beyond a grid on one machine: strategies, shards, the tuned table, replays, faults.

#include <algorithm>
#include <csignal>
#include <cstdio>

#include "program.hpp"

namespace fusescope::cli {
namespace {

constexpr int kNoLimit = 3600;  // [s] samples, and trials, are as many as on any other machine

class Search : public test::ProgramTest {
 protected:
  Search() {
    test::write_text(folder_ / "space.json", R"({"name": "space", "shape": "tiny.json",
      "routing": "uniform", "engine": "sim", "base": {"dispatch_comm_sms": 8},
      "axes": {"dispatch_comm_sms": [4, 8, 12, 16, 20, 24], "combine_comm_sms": [4, 8, 16],
               "tokens_per_block": [4, 8, 12], "all_hands": [true, false]}})");
  }
  std::size_t trials(const std::string& folder) const {
    const std::string log = test::read_text(folder_ / folder / "trials.jsonl");
    return static_cast<std::size_t>(std::count(log.begin(), log.end(), '\n')) - 1;
  }
};

TEST_F(Search, TuneKeepsTheWinnerAndRunUsesIt) {
  ASSERT_EQ(fusescope("sweep space.json --out whole").code, 0);
  const Json best = Json::parse(fusescope("sweep space.json --out whole --json").out)["best"];
  const test::Said tuned = fusescope("tune space.json --out t --json");
  ASSERT_EQ(tuned.code, 0) << tuned.err;
  EXPECT_LT(trials("t"), trials("whole") / 2);
  const Json entry = tuned.json();
  EXPECT_LE(entry["wall_us"].get<double>(), best["median_us"].get<double>() * 1.02);
  EXPECT_EQ(entry["routing"], "uniform");
  EXPECT_GE(entry["runner_up"]["slower"].get<double>(), 0);
  EXPECT_TRUE(std::filesystem::exists(folder_ / "tuned.json"));

  const test::Said run = fusescope(
      "run --shape tiny.json --routing uniform --engine sim --config tuned --no-trace --json");
  ASSERT_EQ(run.code, 0) << run.err;
  EXPECT_EQ(run.json()["config"], entry["config"]);
  refused("run --shape tiny.json --routing zipf:1.2 --engine sim --config tuned --no-trace",
          {"tuned.json: has no winner for ", "zipf:1.2", "\"fusescope tune\" makes",
           "what the own table tuned.json has: R=2 T=64"});

  const test::Said again = fusescope("tune space.json --out t2 --strategy racing --seed 9");
  ASSERT_EQ(again.code, 0) << again.err;
  for (const char* part :
       {"Winner ", "Runner-up ", "It takes the place of ", "Table: tuned.json"}) {
    EXPECT_NE(again.out.find(part), std::string::npos) << again.out << "lacks " << part;
  }
}

TEST_F(Search, ComparedConfigsAreTimedInTurns) {
  Json document = Json::parse(test::read_text(folder_ / "space.json"));
  document["profile"] = FUSESCOPE_TEST_SOURCE_DIR "/tests/sweep/profiles/other-hardware.json";
  document["measure"]["max_seconds"] = kNoLimit;
  test::write_text(folder_ / "noisy.json", document.dump());
  test::write_text(folder_ / "a.json", R"({"dispatch_comm_sms": 24})");
  test::write_text(folder_ / "b.json", R"({"dispatch_comm_sms": 2})");
  const test::Said said = fusescope("tune noisy.json --compare a.json b.json --out c");
  ASSERT_EQ(said.code, 0) << said.err;
  EXPECT_NE(said.out.find("timed in turns): dispatch_comm_sms=2"), std::string::npos) << said.out;
  EXPECT_EQ(trials("c"), 16u);
  EXPECT_EQ(fusescope("tune noisy.json --compare a.json a.json --out d").out,
            "They are one config: dispatch_comm_sms=24\n");
}

// Every config of the space is slower than the base, which no axis passes through.
TEST_F(Search, TuneEndsWithTheBaseWhereNothingIsFaster) {
  Json document = Json::parse(test::read_text(folder_ / "space.json"));
  document["profile"] = FUSESCOPE_TEST_SOURCE_DIR "/tests/sweep/profiles/other-hardware.json";
  document["base"] = {{"dispatch_comm_sms", 24}};
  document["axes"] = {{"dispatch_comm_sms", {1, 2, 4}}, {"tokens_per_block", {4, 8}}};
  document["measure"] = {{"max_seconds", kNoLimit}, {"base_every", 25}};
  test::write_text(folder_ / "slow.json", document.dump());
  const test::Said tuned = fusescope("tune slow.json --out t --json");
  ASSERT_EQ(tuned.code, 0) << tuned.err;
  EXPECT_EQ(tuned.json()["config"]["dispatch_comm_sms"], 24);
  EXPECT_LE(tuned.json()["runner_up"]["config"]["dispatch_comm_sms"], 4);

  const std::string log = test::read_text(folder_ / "t/trials.jsonl");
  ASSERT_EQ(fusescope("tune slow.json --out t").code, 0);
  EXPECT_EQ(test::read_text(folder_ / "t/trials.jsonl"), log);

  document["constraints"] = {"dispatch_comm_sms <= 4"};
  test::write_text(folder_ / "slow.json", document.dump());
  const test::Said excluded = fusescope("tune slow.json --out u --json");
  ASSERT_EQ(excluded.code, 0) << excluded.err;
  EXPECT_LE(excluded.json()["config"]["dispatch_comm_sms"], 4);
}

TEST_F(Search, ATableThatIsNoneIsRefusedBeforeAnythingRuns) {
  refused("tune space.json --out t --table space.json", {"space.json: ", "is not a tuned table"});
  refused("tune space.json --out t --table space.json/mine.json",
          {"--table: space.json: the folder cannot be made"});
}

TEST_F(Search, StrategiesRepeatThemselvesAndResume) {
  for (const std::string strategy : {"local", "racing", "sim_guided"}) {
    Json document = Json::parse(test::read_text(folder_ / "space.json"));
    document["search"] = {{"strategy", strategy}, {"budget", {{"trials", 20}}}};
    test::write_text(folder_ / "s.json", document.dump());
    ASSERT_EQ(fusescope("sweep s.json --out a-" + strategy + " --trials 7").code, 0);
    const test::Said more = fusescope("sweep s.json --json --out a-" + strategy);
    ASSERT_EQ(more.code, 0) << more.err;
    EXPECT_EQ(more.json()["found_in_log"], 7);
    EXPECT_EQ(more.json()["ran"], 13);
    EXPECT_EQ(more.json()["ending"], "trials_spent");
    const test::Said whole = fusescope("sweep s.json --json --jobs 1 --out b-" + strategy);
    EXPECT_EQ(whole.json()["best"], more.json()["best"]) << strategy;
  }
}

TEST_F(Search, TheBudgetOfImprovementEndsASearch) {
  Json document = Json::parse(test::read_text(folder_ / "space.json"));
  document["search"] = {{"strategy", "random"},
                        {"budget", {{"improvement", {{"at_least", 0.5}, {"trials", 9}}}}}};
  test::write_text(folder_ / "s.json", document.dump());
  const test::Said said = fusescope("sweep s.json --jobs 1 --out s");
  ASSERT_EQ(said.code, 0) << said.err;
  EXPECT_NE(said.out.find("The search ended after 10 trials: the last 9 brought less than 50%."),
            std::string::npos)
      << said.out;
}

TEST_F(Search, ShardsMergeIntoTheSweep) {
  for (const char* shard : {"1", "2", "3"}) {
    const std::string number = shard;
    ASSERT_EQ(fusescope("sweep space.json --shard " + number + "/3 --out shard-" + number).code, 0);
  }
  refused("sweep space.json --shard 2/3 --out shard-1",
          {"is the log of another sweep: /shard was \"1/3\", is \"2/3\""});
  refused("merge shard-1 shard-2 --out shard-3", {"--out: shard-3: is not empty"});
  refused("sweep space.json --shard 4/3 --out x", {"--shard: \"4/3\" is not a shard"});
  const test::Said some = fusescope("merge shard-1 shard-3 --out some");
  EXPECT_NE(some.err.find("Shard 2/3 is missing."), std::string::npos) << some.err;
  const test::Said merged = fusescope("merge shard-1 shard-2 shard-3 --out whole");
  ASSERT_EQ(merged.code, 0) << merged.err;
  const Json whole = fusescope("sweep space.json --out whole --json").json();
  EXPECT_EQ(whole["ran"], 0);
  EXPECT_EQ(whole["found_in_log"], 108);
  const Json alone = fusescope("sweep space.json --out alone --json").json();
  EXPECT_EQ(whole["best"]["median_us"], alone["best"]["median_us"]);
  for (const char* file : {"trials.csv", "trials.t4.json", "metadata.t4.json", "sweep.json"}) {
    EXPECT_TRUE(std::filesystem::exists(folder_ / "whole" / file)) << file;
  }
}

TEST_F(Search, FaultsAreVerdictsAndTheSweepGoesOn) {
  Json document = Json::parse(test::read_text(folder_ / "sweep.json"));
  document["measure"]["deadline_seconds"] = kNoLimit;
  test::write_text(folder_ / "sweep.json", document.dump());
  const test::Said said = fusescope(
      "sweep sweep.json --out s --json --inject-fault 'segfault: tokens_per_block == 4' "
      "--inject-fault 'memory: dispatch_comm_sms == 8'");
  ASSERT_EQ(said.code, 0) << said.err;
  const Json result = said.json();
  std::map<std::string, int> verdicts;
  for (const Json& trial : result["failed"]) {
    ++verdicts[trial["verdict"].get<std::string>()];
  }
  EXPECT_EQ(verdicts["crashed"], 3);
  EXPECT_EQ(verdicts["out_of_memory"], 1);
  EXPECT_EQ(result["ok"], 2);
  EXPECT_GT(result["ladder"].size(), 4u);
  // Such a log says so, and is no other sweep's.
  refused("sweep sweep.json --out s", {"with injected faults: segfault at"});
  refused("sweep sweep.json --out x --inject-fault 'sneeze: tokens_per_block == 4'",
          {"\"sneeze: tokens_per_block == 4\" is not a fault; accepted: KIND: CONSTRAINT"});
  EXPECT_EQ(fusescope("sweep --help").out.find("inject"), std::string::npos);
  EXPECT_EQ(fusescope("--help").out.find("sweep-worker"), std::string::npos);
}

TEST_F(Search, WorkersGiveTheSameTrials) {
  Json document = Json::parse(test::read_text(folder_ / "sweep.json"));
  document["measure"]["deadline_seconds"] = kNoLimit;
  test::write_text(folder_ / "sweep.json", document.dump());
  ASSERT_EQ(fusescope("sweep sweep.json --out here").code, 0);
  ASSERT_EQ(fusescope("sweep sweep.json --out there --isolate").code, 0);
  const Json here = fusescope("sweep sweep.json --out here --json").json();
  const Json there = fusescope("sweep sweep.json --out there --json --isolate").json();
  EXPECT_EQ(here["best"], there["best"]);
  EXPECT_EQ(here["ladder"], there["ladder"]);
  EXPECT_TRUE(std::filesystem::exists(folder_ / "there/best/timeline.fst"));
}

// On hardware that the guiding profile does not describe, with noise: what guided search and racing are
// worth. The whole space is measured first; the strategies are then replayed on its samples.
TEST_F(Search, GuidedSearchAndRacingNeedATenthOfTheMeasurements) {
  test::write_text(folder_ / "mid.json", R"({"name": "mid", "source": "a test", "ranks": 2,
    "tokens_per_rank": 128, "hidden": 1024, "experts": 16, "topk": 4, "intermediate": 512})");
  Json document = {
      {"name", "whole"},
      {"shape", "mid.json"},
      {"routing", "uniform"},
      {"engine", "sim"},
      {"profile", FUSESCOPE_TEST_SOURCE_DIR "/tests/sweep/profiles/other-hardware.json"},
      {"base", {{"dispatch_comm_sms", 64}, {"combine_comm_sms", 32}}},
      {"axes",
       {{"dispatch_comm_sms", {2, 4, 8, 16, 24, 32, 48, 64, 80}},
        {"combine_comm_sms", {0, 4, 8, 16, 32, 48}},
        {"tokens_per_block", {4, 8, 12}},
        {"pull_order", {"by_slot", "by_token"}},
        {"all_hands", {true, false}}}},
      {"constraints", {"combine_comm_sms > 0 or all_hands"}},
      {"search", {{"strategy", "grid"}}},
      {"measure", {{"min_samples", 20}, {"target_rel_ci", 0.02}, {"max_seconds", kNoLimit}}},
      {"finalists", {{"configs", 0}}}};
  test::write_text(folder_ / "whole.json", document.dump());
  ASSERT_EQ(fusescope("sweep whole.json --out whole").code, 0);
  const test::Said said = fusescope("tune --replay whole --seeds 100 --json");
  ASSERT_EQ(said.code, 0) << said.err;
  const Json replay = said.json();
  EXPECT_EQ(replay["configs"], 594);
  for (const Json& strategy : replay["strategies"]) {
    if (strategy["strategy"] == "sim_guided" || strategy["strategy"] == "racing") {
      EXPECT_GE(strategy["reached_in_budget"], 95) << strategy;
      EXPECT_LE(strategy["gap"]["p90"], 0.02) << strategy;
    }
  }
  const test::Said table = fusescope("tune --replay whole --seeds 3 --strategy racing");
  EXPECT_NE(table.out.find("racing"), std::string::npos) << table.out;
  EXPECT_NE(table.out.find("random"), std::string::npos) << table.out;

  // A log of another space knows no answer.
  document = Json::parse(test::read_text(folder_ / "whole/sweep.json"));
  document["base"]["watermark_chunks"] = 2;
  test::write_text(folder_ / "whole/sweep.json", document.dump());
  const test::Said other = fusescope("tune --replay whole");
  EXPECT_EQ(other.code, 2);
  EXPECT_NE(
      other.err.find("/base: none of its 594 configs is in the log beside it; watermark_chunks "
                     "is 2, in the log 1"),
      std::string::npos)
      << other.err;
}

}  // namespace
}  // namespace fusescope::cli
