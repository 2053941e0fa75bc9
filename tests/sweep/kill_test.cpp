// A sweep that is killed at any moment goes on where it was: no finished trial is lost, none is run
// again.

#include <gtest/gtest.h>
#include <sys/wait.h>

#include <csignal>
#include <map>
#include <random>

#include "sweep/isolated_executor.hpp"
#include "sweep/runner.hpp"
#include "sweep_fixture.hpp"

namespace fusescope::sweep {
namespace {

constexpr int kKills = 50;
constexpr long long kConfigs = 320;
constexpr int kSleepMs = 10;  // of a run of the engine

Json document() {
  Json sweep = test::small_sweep_document();
  sweep["axes"] = {{"dispatch_comm_sms", Json::array()}, {"combine_comm_sms", {4, 8, 12, 16}}};
  for (int value = 4; value < 84; ++value) {
    sweep["axes"]["dispatch_comm_sms"].push_back(value);
  }
  return sweep;
}

// The whole sweep, as a process of its own would run it.
Outcome sweep_on(const std::string& log_path, const std::string& runs_file) {
  const SweepConfig sweep = parse_sweep_config(document(), "kill.json");
  WorkerOptions options;
  options.command = {FUSESCOPE_TEST_WORKER, runs_file};
  options.open = {{"document", document()}, {"faults", Json::array()}, {"sleep_ms", kSleepMs}};
  IsolatedExecutor executor(options);
  TrialLog log(log_path, test::small_header(sweep));
  return run_search(sweep, executor.hello().device, executor, log, {});
}

TEST(Killed, FiftyTimesLosesNoFinishedTrialAndRepeatsNone) {
  const test::TemporaryFolder folder;
  const std::string log_path = folder.file("trials.jsonl");
  const std::string runs_file = folder.file("runs");
  const auto logged = [&] {
    const std::string text = test::read_text(log_path);
    return std::count(text.begin(), text.end(), '\n') - 1;
  };
  std::mt19937 random(7);
  std::string before;
  for (int kills = 0; kills < kKills; ++kills) {
    // After so many trials more, and then at any moment; after none, the worker may not be open yet.
    const auto enough = logged() + static_cast<long>(random() % 4);
    const auto moment = static_cast<useconds_t>(random() % (2000 * kSleepMs));
    const pid_t child = ::fork();
    if (child == 0) {
      sweep_on(log_path, runs_file);
      ::_exit(0);
    }
    bool ended = false;  // by itself: it had run all configs before this process looked again
    while (!ended && logged() < enough) {
      ::usleep(500);
      ended = ::waitpid(child, nullptr, WNOHANG) == child;
    }
    if (!ended) {
      ::usleep(moment);
      ::kill(child, SIGKILL);
      ::waitpid(child, nullptr, 0);
    }
    // What was whole stays, byte for byte.
    const std::string now = test::read_text(log_path);
    const std::string whole = before.substr(0, before.rfind('\n') + 1);
    ASSERT_EQ(now.substr(0, whole.size()), whole) << "kill " << kills;
    before = now;
  }
  const auto at_kills = logged();
  EXPECT_GT(at_kills, 0);
  const Outcome last = sweep_on(log_path, runs_file);
  EXPECT_EQ(last.found, at_kills);
  EXPECT_EQ(last.found + last.ran, kConfigs);

  const LogContents log = read_trial_log(log_path);
  std::map<std::uint64_t, int> times;
  for (const Trial& trial : log.trials) {
    EXPECT_EQ(trial.verdict, Verdict::ok) << trial.reason;
    ++times[hash(trial.config)];
  }
  EXPECT_EQ(static_cast<long long>(log.trials.size()), kConfigs);
  EXPECT_EQ(static_cast<long long>(times.size()), kConfigs);
  // The engine ran what is logged, and at most two trials more per kill: one that was not written down yet, and
  // the next one, which was under way.
  const long long lost = static_cast<long long>(test::read_text(runs_file).size()) - kConfigs;
  EXPECT_GE(lost, 0);
  EXPECT_LE(lost, 2 * kKills);
}

}  // namespace
}  // namespace fusescope::sweep
