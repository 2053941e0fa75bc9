// The search of the protocol as a user drives it: nothing found, a planted bug found and replayed, refusals.
#include "program.hpp"

namespace fusescope::cli {
namespace {

using CheckSearch = test::ProgramTest;

TEST_F(CheckSearch, FindsNothingInTheProtocolAsItIs) {
  const test::Said said = fusescope("check --search 300 --seed 5");
  EXPECT_EQ(said.code, 0) << said.err << said.out;
  EXPECT_TRUE(said.out.starts_with("300 schedules, ")) << said.out;
  EXPECT_NE(said.out.find(" (seed 5)"), std::string::npos) << said.out;
  EXPECT_TRUE(said.out.ends_with("nothing found\n")) << said.out;
  const Json json = fusescope("check --search 300 --seed 5 --json --threads 3").json();
  EXPECT_EQ(json["passed"], true);
  EXPECT_EQ(json["schedules"], 300);
  EXPECT_EQ(json["kernel"], "layer");
  EXPECT_TRUE(json["found"].is_null());
  const Json third = fusescope("check --search 300 --kernel gemm_reduce_scatter --json").json();
  EXPECT_EQ(third["kernel"], "gemm_reduce_scatter");
  EXPECT_EQ(third["passed"], true);
}

// What a search prints is enough to see the bug again: the line that it ends with is run as it stands.
TEST_F(CheckSearch, FindsAPlantedBugAndReplaysIt) {
  const test::Said said = fusescope("check --search 2000 --bug push_counted_after_read");
  EXPECT_EQ(said.code, 1) << said.err << said.out;
  EXPECT_NE(said.out.find("bug push_counted_after_read"), std::string::npos) << said.out;
  EXPECT_NE(said.out.find(" breaks the protocol: race"), std::string::npos) << said.out;
  EXPECT_NE(said.out.find("\nminimised in "), std::string::npos) << said.out;
  const std::string before = "\nall of them: fusescope ";
  const std::size_t line = said.out.find(before);
  ASSERT_NE(line, std::string::npos) << said.out;
  std::string arguments = said.out.substr(line + before.size());
  ASSERT_TRUE(arguments.ends_with("'\n")) << arguments;
  arguments.pop_back();
  const test::Said again = fusescope(arguments);
  EXPECT_EQ(again.code, 1) << again.err << again.out;
  EXPECT_NE(again.out.find("^ race: "), std::string::npos) << again.out;
  EXPECT_TRUE(again.out.ends_with("the schedule breaks the protocol\n")) << again.out;
}

TEST_F(CheckSearch, JsonHasTheScheduleSmallAndWhole) {
  const test::Said said =
      fusescope("check --search 2000 --bug election_one_early --limit ranks=2 --json");
  EXPECT_EQ(said.code, 1) << said.err;
  const Json json = said.json();
  EXPECT_EQ(json["passed"], false);
  EXPECT_EQ(json["bug"], "election_one_early");
  const Json& found = json["found"];
  EXPECT_EQ(json["schedules"], found["index"].get<int>() + 1);
  for (const Json* each : {&found, &found["minimised"]}) {
    const std::string schedule = (*each)["schedule"];
    const test::Said replayed = fusescope("check --json --replay '" + schedule + "'");
    EXPECT_EQ(replayed.code, 1) << schedule << replayed.err;
    EXPECT_EQ(replayed.json()["finding"], (*each)["finding"]) << schedule;
    EXPECT_EQ(replayed.json()["schedule"], schedule);
  }
  EXPECT_LE(found["minimised"]["finding"]["step"], found["finding"]["step"]);
}

TEST_F(CheckSearch, ListsTheBugsOfEachKernel) {
  const test::Said layer = fusescope("check --bug list");
  const test::Said third = fusescope("check --bug list --kernel gemm_reduce_scatter");
  EXPECT_EQ(layer.code + third.code, 0) << layer.err << third.err;
  EXPECT_NE(layer.out.find("\ngate_relaxed "), std::string::npos) << layer.out;
  EXPECT_EQ(third.out.find("\ngate_relaxed "), std::string::npos) << third.out;
  EXPECT_NE(third.out.find("\nwatermark_before_copy "), std::string::npos) << third.out;
}

TEST_F(CheckSearch, RefusesWhatCannotBeSearched) {
  for (const char* count : {"0", "-5", "many", "1.5", "99999999999999999999"}) {
    refused(std::string("check --search ") + count,
            {std::string("check: --search: Value ") + count + " not in range 1 to "});
  }
  refused("check --search", {"check: --search: "});
  refused("check --search 10 --set launch=programmatic", {"--set", "configs of its own"});
  refused("check --search 10 --gemm mma", {"--gemm", "configs of its own"});
  refused("check --search 10 --bug tow_elected",
          {"--bug: unknown bug \"tow_elected\", did you mean \"two_elected\"?; accepted: "});
  refused("check --search 10 --kernel layr",
          {"--kernel: \"layr\" cannot be searched; accepted: layer or gemm_reduce_scatter"});
  refused("check --search 10 --limit ranks=9",
          {"--limit: ranks: \"9\"; accepted: a number from 1 to 4"});
  refused("check --search 10 --limit rank=2", {"--limit: \"rank=2\" limits nothing; accepted: "});
  refused("check --replay ranks=99",
          {"--replay: ranks: \"99\" cannot be searched; accepted: a number from 1 to 8"});
  refused("check --replay 'ranks=2 choices=1*x'",
          {"--replay: choices: \"1*x\" is not a choice; accepted: numbers and runs of them"});
  refused("check --search 10 --replay ranks=2", {"check: --search excludes --replay"});
}

TEST_F(CheckSearch, RefusesWhatIsForASearchWithoutOne) {
  for (const char* option : {"--limit ranks=2", "--threads 2", "--kernel gemm_reduce_scatter"}) {
    refused(std::string("check ") + option,
            {"is for a search only, and none is asked for; accepted: together with --search N"});
  }
}

}  // namespace
}  // namespace fusescope::cli
