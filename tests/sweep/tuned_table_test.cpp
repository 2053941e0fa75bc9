#include "sweep/tuned_table.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "sweep_fixture.hpp"

namespace fusescope::sweep {
namespace {

Trial measured(int comm_sms, double wall) {
  Trial trial;
  trial.id = comm_sms;
  trial.config.dispatch_comm_sms = comm_sms;
  trial.wall_us = {wall};
  trial.source = "made up by a test";
  set_medians(trial);
  return trial;
}

TunedKey key(const std::string& device = "fake device") {
  return tuned_key("fake", {device, 110, 101376}, test::small_problem());
}

TEST(TunedTable, KeepsTheWinnerAndHowFarTheRunnerUpIs) {
  const std::optional<TunedEntry> entry =
      tuned_entry({measured(8, 110), measured(16, 100), measured(24, 104)}, key());
  ASSERT_TRUE(entry);
  EXPECT_EQ(entry->config.dispatch_comm_sms, 16);
  ASSERT_TRUE(entry->runner_up);
  EXPECT_EQ(entry->runner_up->config.dispatch_comm_sms, 24);
  EXPECT_NEAR(entry->runner_up->slower, 0.04, 1e-12);
  EXPECT_FALSE(entry->runner_up->tie);
  EXPECT_FALSE(tuned_entry({}, key()));
}

TEST(TunedTable, HasOneWinnerPerDeviceShapeAndRouting) {
  const test::TemporaryFolder folder;
  const std::string path = folder.file("tuned.json");
  EXPECT_TRUE(read_tuned_table(path).empty());
  const auto put = [&](const TunedKey& where, int comm_sms) {
    std::optional<TunedEntry> replaced;
    const TunedEntry entry = *tuned_entry({measured(comm_sms, 100), measured(4, 120)}, where);
    test::write_text(path, with_entry(read_tuned_table(path), entry, replaced).dump());
    return replaced;
  };
  EXPECT_FALSE(put(key(), 8));
  EXPECT_FALSE(put(key("other device"), 16));
  const std::optional<TunedEntry> replaced = put(key(), 24);
  ASSERT_TRUE(replaced);
  EXPECT_EQ(replaced->config.dispatch_comm_sms, 8);
  EXPECT_EQ(read_tuned_table(path).size(), 2u);
  const std::vector<TunedTable> own = {{path, false, read_tuned_table(path)}};
  EXPECT_EQ(tuned_choice(own, key()).entry.config.dispatch_comm_sms, 24);
  EXPECT_EQ(tuned_choice(own, key("other device")).entry.config.dispatch_comm_sms, 16);
  const std::string message = test::input_error([&] { tuned_choice(own, key("third")); });
  EXPECT_NE(message.find("has no winner for R=2 T=16 H=64 E=4 K=2 I=32 on third (fake)"),
            std::string::npos)
      << message;
  EXPECT_NE(message.find("on other device (fake)"), std::string::npos) << message;
}

TEST(TunedTable, SaysHowItsWinnerWasMeasured) {
  const test::TemporaryFolder folder;
  const std::string path = folder.file("tuned.json");
  const auto with_rest = [&](int rest_ms) {
    TunedEntry entry = *tuned_entry({measured(8, 100)}, key());
    entry.rest_ms = rest_ms;
    std::optional<TunedEntry> replaced;
    const Json table = with_entry({}, entry, replaced);
    test::write_text(path, table.dump());
    return table.at("entries").at(0);
  };
  const auto choice = [&](int rest_ms) {
    return tuned_choice({{path, false, read_tuned_table(path)}}, key(), rest_ms);
  };
  EXPECT_FALSE(with_rest(0).contains("rest_ms"));
  EXPECT_EQ(choice(0).entry.rest_ms, 0);
  EXPECT_NE(choice(0).from.find("made up by a test, iterations back to back, "), std::string::npos);
  EXPECT_EQ(choice(0).from.find("differs"), std::string::npos) << choice(0).from;
  EXPECT_TRUE(choice(10).from.ends_with("; this run differs: each iteration after a rest of 10 ms"))
      << choice(10).from;

  EXPECT_EQ(with_rest(10).at("rest_ms"), 10);
  EXPECT_EQ(choice(10).entry.rest_ms, 10);
  EXPECT_NE(choice(10).from.find("made up by a test, each iteration after a rest of 10 ms, "),
            std::string::npos);
  EXPECT_EQ(choice(10).from.find("differs"), std::string::npos) << choice(10).from;
  EXPECT_TRUE(choice(0).from.ends_with("; this run differs: iterations back to back"))
      << choice(0).from;
}

TEST(TunedTable, ASimulatedWinnerHasNoRest) {
  TunedEntry entry = *tuned_entry({measured(8, 100)}, key());
  entry.key.engine = "sim";
  EXPECT_EQ(describe_source(entry), "made up by a test");
  const TunedTable table{"tuned.json", false, {entry}};
  EXPECT_EQ(tuned_choice({table}, entry.key, 10).from.find("rest"), std::string::npos);
}

TEST(TunedTable, AnotherFileIsRefused) {
  const test::TemporaryFolder folder;
  const std::string path = folder.file("tuned.json");
  test::write_text(path, R"({"name": "my sweep"})");
  EXPECT_NE(test::input_error([&] { read_tuned_table(path); }).find("is not a tuned table"),
            std::string::npos);
}

TEST(TunedTable, SaysHowFarTheRunnerUpIs) {
  EXPECT_EQ(describe(RunnerUp{{}, 0.012, 0.012, 0.012, false}), "+1.20%");
  EXPECT_EQ(describe(RunnerUp{{}, 0.012, -0.001, 0.025, true}),
            "+1.20% (95% -0.10% to +2.50%, timed in turns), a tie");
}

// A sweeps folder with tables of its own.
class ShippedTables : public testing::Test {
 protected:
  ShippedTables() {
    std::filesystem::create_directories(folder_.file("sweeps"));
    setenv("FUSESCOPE_SWEEPS_DIR", folder_.file("sweeps").c_str(), 1);
  }
  ~ShippedTables() override { unsetenv("FUSESCOPE_SWEEPS_DIR"); }

  std::string shipped(const std::string& name) const {
    return folder_.file("sweeps/tuned/" + name);
  }
  void write_shipped(const std::string& name, const std::string& text) const {
    std::filesystem::create_directories(folder_.file("sweeps/tuned"));
    test::write_text(shipped(name), text);
  }
  static Json table(const TunedKey& where, int comm_sms) {
    std::optional<TunedEntry> replaced;
    return with_entry({}, *tuned_entry({measured(comm_sms, 100), measured(4, 120)}, where),
                      replaced);
  }
  std::vector<TunedTable> tables() const { return tuned_tables(own_); }

  const test::TemporaryFolder folder_;
  const std::string own_ = folder_.file("own.json");
};

TEST_F(ShippedTables, MayBeMissing) {
  ASSERT_EQ(tables().size(), 1u);
  EXPECT_FALSE(tables()[0].shipped);
  const std::string message = test::input_error([&] { tuned_choice(tables(), key()); });
  EXPECT_TRUE(message.starts_with(own_ + ": has no winner for ")) << message;
  EXPECT_NE(message.find("\"fusescope tune\" makes"), std::string::npos) << message;
  EXPECT_EQ(message.find("table " + own_), std::string::npos) << message;
}

TEST_F(ShippedTables, ComeAfterTheOwnTable) {
  write_shipped("a.json", table(key(), 8).dump());
  write_shipped("b.json", table(key("other device"), 12).dump());
  const TunedChoice shipped_one = tuned_choice(tables(), key());
  EXPECT_EQ(shipped_one.entry.config.dispatch_comm_sms, 8);
  EXPECT_TRUE(shipped_one.from.starts_with("shipped table " + shipped("a.json") + ": 100.0 us, "))
      << shipped_one.from;
  EXPECT_TRUE(shipped_one.from.ends_with("; runner-up +20.00%")) << shipped_one.from;
  EXPECT_EQ(tuned_choice(tables(), key("other device")).entry.config.dispatch_comm_sms, 12);

  test::write_text(own_, table(key(), 24).dump());
  const TunedChoice own_one = tuned_choice(tables(), key());
  EXPECT_EQ(own_one.entry.config.dispatch_comm_sms, 24);
  EXPECT_TRUE(own_one.from.starts_with("own table " + own_ + ": ")) << own_one.from;
  EXPECT_EQ(tuned_choice(tables(), key("other device")).entry.config.dispatch_comm_sms, 12);

  const std::string message = test::input_error([&] { tuned_choice(tables(), key("third")); });
  for (const std::string& part :
       {"own table " + own_ + " has: " + describe(key()), "table " + shipped("a.json") + " has: ",
        "table " + shipped("b.json") + " has: " + describe(key("other device"))}) {
    EXPECT_NE(message.find(part), std::string::npos) << message << "\nlacks " << part;
  }
}

TEST_F(ShippedTables, ThatAreBrokenAreNamedWithThePlace) {
  test::write_text(own_, table(key(), 24).dump());
  const std::string good = table(key(), 8).dump();
  const auto refused = [&](Json document, const std::string& part) {
    write_shipped("a.json", document.is_string() ? document.get<std::string>() : document.dump());
    const std::string message = test::input_error([&] { tables(); });
    EXPECT_TRUE(message.starts_with(shipped("a.json") + ": " + part)) << message;
  };
  refused(good.substr(0, good.size() / 2), "line 1");
  refused(Json::array(), "/: is not a tuned table");
  Json document = Json::parse(good);
  document["entries"][0]["config"]["dispatch_com_sms"] = 8;
  refused(document, "/entries/0/config/dispatch_com_sms: ");
  document = Json::parse(good);
  document["entries"][0]["wall_us"] = "fast";
  refused(document, "/entries/0/wall_us: ");
  document = Json::parse(good);
  document["entries"][0]["runner_up"]["tie"] = 0;
  refused(document, "/entries/0/runner_up/tie: ");
  document["entries"] = Json::object();
  refused(document, "/entries: ");
}

}  // namespace
}  // namespace fusescope::sweep
