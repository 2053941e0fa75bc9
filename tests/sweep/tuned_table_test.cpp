#include "sweep/tuned_table.hpp"

#include <gtest/gtest.h>

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
  EXPECT_EQ(tuned_config(path, key()).config.dispatch_comm_sms, 24);
  EXPECT_EQ(tuned_config(path, key("other device")).config.dispatch_comm_sms, 16);
  const std::string message = test::input_error([&] { tuned_config(path, key("third")); });
  EXPECT_NE(message.find("has no winner for R=2 T=16 H=64 E=4 K=2 I=32 on third (fake)"),
            std::string::npos)
      << message;
  EXPECT_NE(message.find("on other device (fake)"), std::string::npos) << message;
}

TEST(TunedTable, AnotherFileIsRefused) {
  const test::TemporaryFolder folder;
  const std::string path = folder.file("tuned.json");
  test::write_text(path, R"({"name": "my sweep"})");
  EXPECT_NE(test::input_error([&] { read_tuned_table(path); }).find("is not a tuned table"),
            std::string::npos);
}

}  // namespace
}  // namespace fusescope::sweep
