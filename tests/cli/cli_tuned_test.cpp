// Where "--config tuned" finds its config: the user's own table, then those of the sweeps folder.

#include <algorithm>
#include <cstdlib>

#include "program.hpp"

namespace fusescope::cli {
namespace {

namespace fs = std::filesystem;

class Tuned : public test::ProgramTest {
 protected:
  Tuned() {
    const fs::path real = fs::path(FUSESCOPE_TEST_SOURCE_DIR) / "sweeps";
    fs::create_directories(folder_ / "sweeps");
    fs::copy(real / "shapes", folder_ / "sweeps/shapes");
    fs::create_directory_symlink(real / "profiles", folder_ / "sweeps/profiles");
    fs::copy(real / "tune.json", folder_ / "sweeps/tune.json");
    fs::copy(folder_ / "tiny.json", folder_ / "sweeps/shapes/tiny.json");
    setenv("FUSESCOPE_SWEEPS_DIR", (folder_ / "sweeps").c_str(), 1);
  }
  ~Tuned() override { unsetenv("FUSESCOPE_SWEEPS_DIR"); }

  static Json entry(const std::string& routing, const Json& knobs) {
    return {{"engine", "sim"},
            {"device", "rtx-pro-5000-pcie5"},
            {"shape", "R=2 T=64 H=256 E=8 K=2 I=128"},
            {"routing", routing},
            {"config", knobs},
            {"wall_us", 123.45},
            {"half_ci_us", 0.5},
            {"runner_up",
             {{"config", {{"tokens_per_block", 4}}},
              {"slower", 0.012},
              {"low", 0.007},
              {"high", 0.017},
              {"tie", false}}},
            {"source", "made up by a test"},
            {"problem", "tiny"},
            {"fusescope", "fusescope 0 (abc)"},
            {"log", "none"},
            {"date", "2026-01-02T03:04:05Z"}};
  }
  void write_table(const std::string& file, const std::vector<Json>& entries) const {
    fs::create_directories((folder_ / file).parent_path());
    const Json table = {{"format", "fusescope-tuned"}, {"version", 1}, {"entries", entries}};
    test::write_text(folder_ / file, table.dump());
  }
  std::string shipped(const std::string& name) const {
    return (folder_ / "sweeps/tuned" / name).string();
  }

  const std::string run_ = "run --shape tiny --engine sim --config tuned --routing ";
};

TEST_F(Tuned, RunTakesTheOwnEntryElseTheShippedOne) {
  write_table("sweeps/tuned/a.json", {entry("uniform", {{"dispatch_comm_sms", 8}}),
                                      entry("balanced", {{"dispatch_comm_sms", 12}})});
  write_table("tuned.json", {entry("balanced", {{"dispatch_comm_sms", 24}})});

  const test::Said text = fusescope(run_ + "uniform --no-trace --out r");
  ASSERT_EQ(text.code, 0) << text.err;
  for (const std::string& part :
       {std::string("config    dispatch_comm_sms=8\n"), "shipped table " + shipped("a.json"),
        std::string("made up by a test"), std::string("2026-01-02T03:04:05Z"),
        std::string("runner-up +1.20%"), std::string("+0.70% to +1.70%")}) {
    EXPECT_NE(text.out.find(part), std::string::npos) << text.out << "lacks " << part;
  }
  const Json record = Json::parse(test::read_text(folder_ / "r/run.json"));
  EXPECT_EQ(record["config"]["dispatch_comm_sms"], 8);
  EXPECT_EQ(record["config_from"],
            "shipped table " + shipped("a.json") +
                ": 123.5 us, made up by a test, 2026-01-02T03:04:05Z; runner-up +1.20% (95% "
                "+0.70% to +1.70%, timed in turns)");

  const Json own = fusescope(run_ + "balanced --no-trace --json --set tokens_per_block=4").json();
  EXPECT_EQ(own["config"]["dispatch_comm_sms"], 24);
  EXPECT_EQ(own["config"]["tokens_per_block"], 4);
  EXPECT_TRUE(own["config_from"].get<std::string>().starts_with("own table tuned.json: "))
      << own["config_from"];

  const Json neither = fusescope("run --shape tiny --engine sim --no-trace --json").json();
  EXPECT_FALSE(neither.contains("config_from"));
}

TEST_F(Tuned, AnEntryMayNameATileOfSeveralRowBlocks) {
  Json wide = entry("uniform", {{"tile", "160x256"}});
  wide["device"] = "h200-nvlink";
  wide["runner_up"]["config"] = {{"tile", "288x128"}};
  write_table("sweeps/tuned/a.json", {wide});

  const std::string run = run_ + "uniform --profile h200-nvlink --no-trace ";
  const test::Said text = fusescope(run);
  ASSERT_EQ(text.code, 0) << text.err;
  EXPECT_NE(text.out.find("config    tile=160x256\n"), std::string::npos) << text.out;
  EXPECT_EQ(fusescope(run + "--json").json()["config"]["tile"], "160x256");

  refused(run + "--gemm mma", {"tile 160x256 needs wgmma", "tile auto"});
  const Json small = fusescope(run + "--gemm mma --set tile=auto --json").json();
  EXPECT_EQ(small["config"]["tile"], "auto");

  const Json rows = fusescope("list tuned --json").json();
  ASSERT_EQ(rows.size(), 1U);
  EXPECT_EQ(rows[0]["knobs"], (Json{{"tile", "160x256"}}));
  const test::Said list = fusescope("list tuned");
  EXPECT_NE(list.out.find("\n    tile=160x256\n"), std::string::npos) << list.out;
}

TEST_F(Tuned, EachRunAcrossAKnobStartsFromTheEntry) {
  write_table("sweeps/tuned/a.json", {entry("uniform", {{"tokens_per_block", 8}})});
  const test::Said said =
      fusescope(run_ + "uniform --rungs --across dispatch_comm_sms=4,8 --out tax");
  ASSERT_EQ(said.code, 0) << said.err;
  EXPECT_NE(said.out.find("tuned     shipped table "), std::string::npos) << said.out;
  for (const char* folder : {"dispatch_comm_sms-4", "dispatch_comm_sms-8"}) {
    const Json record = Json::parse(test::read_text(folder_ / "tax" / folder / "run.json"));
    EXPECT_EQ(record["config"]["tokens_per_block"], 8);
    EXPECT_TRUE(record["config_from"].get<std::string>().starts_with("shipped table "));
  }
}

TEST_F(Tuned, WithoutAnEntryBothTablesAreToldAndHowToMakeOne) {
  refused(run_ + "zipf:1.2", {"tuned.json: has no winner for R=2 T=64 H=256 E=8 K=2 I=128 on ",
                              "zipf:1.2", "\"fusescope tune\" makes"});
  write_table("sweeps/tuned/a.json", {entry("uniform", Json::object())});
  write_table("tuned.json", {entry("balanced", Json::object())});
  refused(run_ + "zipf:1.2",
          {"\"fusescope tune\" makes",
           "the own table tuned.json has: R=2 T=64 H=256 E=8 K=2 I=128 on rtx-pro-5000-pcie5 "
           "(sim), balanced; ",
           "the shipped table " + shipped("a.json") +
               " has: R=2 T=64 H=256 E=8 K=2 I=128 on rtx-pro-5000-pcie5 (sim), uniform"});
}

TEST_F(Tuned, AnotherMachinesEntryIsToldAsWhatToSet) {
  Json measured = entry("zipf:1.2", {{"dispatch_comm_sms", 8}, {"all_hands", false}});
  measured["engine"] = "cuda";
  measured["device"] = "NVIDIA H200";
  Json defaults = measured;
  defaults["routing"] = "balanced";
  defaults["config"] = Json::object();
  write_table("sweeps/tuned/a.json", {measured, defaults});

  const std::string set = "--set dispatch_comm_sms=8 all_hands=false";
  refused(run_ + "uniform", {"in place of --config tuned", "as far as rtx-pro-5000-pcie5 runs it: ",
                             set + " (NVIDIA H200 (cuda), zipf:1.2); ",
                             "no --set at all (NVIDIA H200 (cuda), balanced)"});
  // And that is accepted as it is printed.
  const Json run =
      fusescope("run --shape tiny --engine sim --routing uniform --no-trace --json " + set).json();
  EXPECT_EQ(run["config"]["dispatch_comm_sms"], 8);
  EXPECT_EQ(run["config"]["all_hands"], false);
  EXPECT_FALSE(run.contains("config_from"));

  measured["shape"] = "R=2 T=8 H=256 E=8 K=2 I=128";
  write_table("sweeps/tuned/a.json", {measured});
  refused(run_ + "uniform",
          {"in place of --config tuned, --set KNOB=VALUE ... from \"list tuned\""});
}

// The tables that come with the program: what is printed runs on the profile of their machine.
TEST_F(Tuned, AShippedEntryRunsOnTheSimulatorAsTold) {
  fs::remove_all(folder_ / "sweeps/tuned");
  fs::create_directory_symlink(fs::path(FUSESCOPE_TEST_SOURCE_DIR) / "sweeps/tuned",
                               folder_ / "sweeps/tuned");
  const std::string common =
      "run --shape olmoe-1b-7b --routing uniform --engine sim --profile h200-nvlink --no-trace ";
  const test::Said said = fusescope(common + "--config tuned");
  EXPECT_EQ(said.code, 2);
  const std::size_t begin = said.err.find("--set ");
  ASSERT_NE(begin, std::string::npos) << said.err;
  const std::string set = said.err.substr(begin, said.err.find(" (", begin) - begin);
  const test::Said run = fusescope(common + "--json " + set);
  ASSERT_EQ(run.code, 0) << set << "\n" << run.err;
  const Json rows = fusescope("list tuned --json").json();
  const auto row = std::find_if(rows.begin(), rows.end(), [](const Json& each) {
    return each["name"] == "olmoe-1b-7b" && each["routing"] == "uniform";
  });
  ASSERT_NE(row, rows.end());
  EXPECT_FALSE((*row)["knobs"].empty());
  for (const auto& [knob, value] : (*row)["knobs"].items()) {
    EXPECT_EQ(run.json()["config"][knob], value) << knob;
  }
}

TEST_F(Tuned, ABrokenShippedTableIsNamed) {
  write_table("sweeps/tuned/a.json", {entry("uniform", {{"all_hand", true}})});
  for (const std::string& command : {run_ + "uniform", std::string("list tuned")}) {
    refused(command, {shipped("a.json") + ": /entries/0/config/all_hand: ", "all_hands"});
  }
  test::write_text(shipped("a.json"), "{");
  refused("list tuned --json", {shipped("a.json") + ": "});
}

TEST_F(Tuned, ListSaysWhatBothTablesHold) {
  const test::Said none = fusescope("list tuned");
  EXPECT_EQ(none.code, 0) << none.err;
  EXPECT_EQ(none.out, "own table tuned.json: no entries\n");
  EXPECT_EQ(fusescope("list tuned --json").json(), Json::array());

  Json other = entry("zipf:1.2", Json::object());
  other["shape"] = "R=2 T=8 H=256 E=8 K=2 I=128";
  other["runner_up"] = nullptr;
  write_table("sweeps/tuned/a.json",
              {entry("uniform", {{"dispatch_comm_sms", 8}, {"all_hands", false}})});
  write_table("tuned.json", {other});

  const test::Said text = fusescope("list tuned");
  ASSERT_EQ(text.code, 0) << text.err;
  EXPECT_EQ(text.out,
            "own table tuned.json\n"
            "  R=2 T=8 H=256 E=8 K=2 I=128, zipf:1.2 on rtx-pro-5000-pcie5 (sim)\n"
            "    defaults\n"
            "    123.5 +- 0.5 us, no other config ran\n"
            "    made up by a test, 2026-01-02T03:04:05Z, fusescope 0 (abc)\n"
            "shipped table " +
                shipped("a.json") +
                "\n"
                "  tiny (R=2 T=64 H=256 E=8 K=2 I=128), uniform on rtx-pro-5000-pcie5 (sim)\n"
                "    dispatch_comm_sms=8 all_hands=false\n"
                "    123.5 +- 0.5 us, runner-up +1.20% (95% +0.70% to +1.70%, timed in turns)\n"
                "    made up by a test, 2026-01-02T03:04:05Z, fusescope 0 (abc)\n");

  const Json rows = fusescope("list tuned --json").json();
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[0]["table"], "tuned.json");
  EXPECT_EQ(rows[0]["shipped"], false);
  EXPECT_EQ(rows[0]["runner_up"], nullptr);
  EXPECT_EQ(rows[0]["knobs"], Json::object());
  EXPECT_EQ(rows[1]["table"], shipped("a.json"));
  EXPECT_EQ(rows[1]["shipped"], true);
  EXPECT_EQ(rows[1]["name"], "tiny");
  EXPECT_EQ(rows[1]["knobs"], (Json{{"dispatch_comm_sms", 8}, {"all_hands", false}}));
  EXPECT_EQ(rows[1]["runner_up"]["slower"], 0.012);
  for (const char* key : {"shape", "routing", "device", "engine", "wall_us", "half_ci_us", "source",
                          "date", "fusescope"}) {
    EXPECT_EQ(rows[1][key], entry("uniform", {})[key]) << key;
  }
}

TEST_F(Tuned, ListSaysHowAMeasuredEntryWasTaken) {
  Json plain = entry("uniform", Json::object());
  plain["engine"] = "cuda";
  Json rested = plain;
  rested["routing"] = "balanced";
  rested["rest_ms"] = 10;
  write_table("tuned.json", {plain, rested});
  const test::Said text = fusescope("list tuned");
  EXPECT_NE(text.out.find("made up by a test, iterations back to back, 2026"), std::string::npos)
      << text.out;
  EXPECT_NE(text.out.find("made up by a test, each iteration after a rest of 10 ms, 2026"),
            std::string::npos)
      << text.out;
  const Json rows = fusescope("list tuned --json").json();
  EXPECT_EQ(rows[0]["rest_ms"], 0);
  EXPECT_EQ(rows[1]["rest_ms"], 10);
  rested["rest_ms"] = -10;
  write_table("tuned.json", {rested});
  refused("list tuned", {"tuned.json: /entries/0/rest_ms: -10 is out of range"});
}

TEST_F(Tuned, TuneRestsAsItIsTold) {
  const std::string tune = "tune --shape tiny --routing uniform --engine sim --trials 3 --out t ";
  const test::Said said = fusescope(tune + "--json --rest-ms 10");
  ASSERT_EQ(said.code, 0) << said.err;
  EXPECT_EQ(Json::parse(test::read_text(folder_ / "t/sweep.json"))["measure"]["rest_ms"], 10);
  EXPECT_FALSE(said.json().contains("rest_ms")) << "a simulation has no rest";
  refused(tune, {"/measure/rest_ms was 10, is null"});
}

TEST_F(Tuned, TuneWritesATableThatIsFoundAmongTheShippedOnes) {
  const test::Said tuned = fusescope(
      "tune --shape tiny --routing uniform --engine sim --trials 3 --out t --json --table " +
      shipped("mine.json"));
  ASSERT_EQ(tuned.code, 0) << tuned.err;
  const test::Said run = fusescope(run_ + "uniform --no-trace --json");
  ASSERT_EQ(run.code, 0) << run.err;
  EXPECT_EQ(run.json()["config"], tuned.json()["config"]);
  EXPECT_TRUE(run.json()["config_from"].get<std::string>().starts_with("shipped table "));
}

// A table beside them is no sweep, shape or profile.
TEST_F(Tuned, OtherListsLeaveTheTablesAlone) {
  std::map<std::string, std::string> before;
  for (const char* what : {"sweeps", "shapes", "profiles"}) {
    before[what] = fusescope(std::string("list ") + what).out;
    EXPECT_FALSE(before[what].empty()) << what;
  }
  write_table("sweeps/tuned/a.json", {entry("uniform", Json::object())});
  for (const auto& [what, text] : before) {
    const test::Said said = fusescope("list " + what);
    EXPECT_EQ(said.code, 0) << said.err;
    EXPECT_EQ(said.out, text);
  }
}

}  // namespace
}  // namespace fusescope::cli
