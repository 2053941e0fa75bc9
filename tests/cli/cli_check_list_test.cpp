#include <set>

#include "program.hpp"

namespace fusescope::cli {
namespace {

using Program = test::ProgramTest;

TEST_F(Program, ChecksTablesAndDataflow) {
  const test::Said said = fusescope("check --shape tiny.json --routing zipf:1.2");
  EXPECT_EQ(said.code, 0) << said.err << said.out;
  EXPECT_NE(said.out.find("passed"), std::string::npos);
  EXPECT_EQ(said.out.find("FAILED"), std::string::npos);
  const Json json = fusescope("check --shape tiny.json --routing zipf:1.2 --json").json();
  EXPECT_EQ(json["passed"], true);
  EXPECT_GT(json["checks"].size(), 1u);
}

TEST_F(Program, EveryListHasRowsAndNames) {
  for (const char* what :
       {"shapes", "routings", "knobs", "sweeps", "engines", "profiles", "formats"}) {
    const test::Said text = fusescope(std::string("list ") + what);
    const test::Said json = fusescope(std::string("list ") + what + " --json");
    ASSERT_EQ(text.code, 0) << what << text.err;
    ASSERT_EQ(json.code, 0) << what << json.err;
    const Json rows = json.json();
    EXPECT_FALSE(rows.empty()) << what;
    for (const Json& row : rows) {
      EXPECT_NE(text.out.find(row["name"].get<std::string>()), std::string::npos) << what;
    }
  }
}

TEST_F(Program, HelpTeaches) {
  for (const char* command : {"run", "sweep", "attribute", "report", "timeline", "check", "list"}) {
    const test::Said said = fusescope(std::string(command) + " --help");
    EXPECT_EQ(said.code, 0);
    EXPECT_NE(said.out.find("Examples:"), std::string::npos) << command;
  }
  EXPECT_NE(fusescope("--help").out.find("Exit codes"), std::string::npos);
}

TEST_F(Program, VersionNamesTheCommit) {
  const test::Said said = fusescope("--version");
  EXPECT_EQ(said.code, 0);
  EXPECT_TRUE(said.out.starts_with("fusescope ")) << said.out;
  EXPECT_NE(said.out.find('('), std::string::npos) << said.out;
}

// The sweeps that come with the program are sound: each reads, has a reason to exist, and has a legal
// config on the profile that it names.
TEST_F(Program, TheSweepsThatComeWithItAreSound) {
  const Json sweeps = fusescope("list sweeps --json").json();
  EXPECT_GE(sweeps.size(), 5u);
  for (const Json& sweep : sweeps) {
    EXPECT_FALSE(sweep["why"].get<std::string>().empty()) << sweep["name"];
    const std::string name = sweep["name"];
    const test::Said said = fusescope("sweep " + name + " --engine sim --trials 1 --out " + name);
    EXPECT_EQ(said.code, 0) << said.err;
  }
}

// So are its tuned tables: they read, hold no two winners for one key, and are of layers that --shape finds.
TEST_F(Program, TheTunedTablesThatComeWithItAreSound) {
  const test::Said said = fusescope("list tuned --json");
  ASSERT_EQ(said.code, 0) << said.err;
  std::set<std::string> keys;
  for (const Json& row : said.json()) {
    EXPECT_TRUE(row["shipped"].get<bool>()) << row;
    const Json key = {row["engine"], row["device"], row["shape"], row["routing"]};
    EXPECT_TRUE(keys.insert(key.dump()).second) << key;
  }
}

}  // namespace
}  // namespace fusescope::cli
