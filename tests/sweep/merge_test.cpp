#include "sweep/merge.hpp"

#include <gtest/gtest.h>

#include <set>

#include "fake_engine.hpp"
#include "sweep/runner.hpp"
#include "sweep_fixture.hpp"

namespace fusescope::sweep {
namespace {

class Merge : public testing::Test {
 protected:
  // Runs a shard of the small sweep; returns its log.
  std::string run(const Shard& shard, long long trials = 0) {
    SweepConfig sweep = test::small_sweep();
    sweep.shard = shard;
    sweep.search.trials = trials;
    const std::string path = folder_.file("shard-" + std::to_string(shard.index) + ".jsonl");
    TrialLog log(path, test::small_header(sweep));
    const auto executor = make_in_process({&engine_, &problem_, sweep.measure, {}, "a test"});
    run_search(sweep, engine_.device(), *executor, log, {});
    return path;
  }

  test::TemporaryFolder folder_;
  test::FakeEngine engine_;
  Problem problem_ = test::small_problem();
};

TEST_F(Merge, ShardsAreTheWholeSweepAndItGoesOnFromThem) {
  const std::vector<std::string> logs = {run({1, 3}), run({2, 3}), run({3, 3})};
  const Merged merged = merge_logs(logs, "merge");
  EXPECT_EQ(merged.trials.size(), 24u);
  EXPECT_TRUE(merged.missing.empty());
  EXPECT_EQ(merged.repeated, 0);
  const std::string whole = folder_.file("whole.jsonl");
  test::write_text(whole, to_text(merged));
  const SweepConfig sweep = test::small_sweep();
  TrialLog log(whole, test::small_header(sweep));
  engine_.runs = 0;
  const auto executor = make_in_process({&engine_, &problem_, sweep.measure, {}, "a test"});
  const Outcome outcome = run_search(sweep, engine_.device(), *executor, log, {});
  EXPECT_EQ(outcome.found, 24);
  EXPECT_EQ(engine_.runs, 0);
}

TEST_F(Merge, SaysWhatIsMissingTornAndRepeated) {
  const std::string first = run({1, 3});
  const std::string third = run({3, 3});
  test::write_text(third, test::read_text(third) + "{\"id\": 9");
  const Merged merged = merge_logs({first, third, first}, "merge");
  EXPECT_EQ(merged.missing, (std::vector<std::string>{"2/3"}));
  EXPECT_EQ(merged.torn, (std::vector<std::string>{third}));
  EXPECT_EQ(merged.repeated, static_cast<long long>(read_trial_log(first).trials.size()));
  std::set<int> ids;
  for (const Trial& trial : merged.trials) {
    ids.insert(trial.id);
  }
  EXPECT_EQ(ids.size(), merged.trials.size());
}

TEST_F(Merge, RefusesLogsThatAreNotOfOneSweep) {
  const std::string first = run({1, 2});
  SweepConfig other = test::small_sweep();
  other.measure.min_samples = 99;
  const std::string path = folder_.file("other.jsonl");
  { const TrialLog log(path, test::small_header(other)); }
  EXPECT_NE(test::input_error([&] {
              merge_logs({first, path}, "merge");
            })
                .find("other.jsonl: line 1: is the log of another sweep than the first: "
                      "/measure/min_samples was 20, is 99"),
            std::string::npos);
  LogHeader header = test::small_header();
  header.device = "another device";
  const std::string elsewhere = folder_.file("elsewhere.jsonl");
  { const TrialLog log(elsewhere, header); }
  EXPECT_NE(test::input_error([&] {
              merge_logs({elsewhere, first}, "merge");
            }).find("the device was another device, is fake device"),
            std::string::npos);
  EXPECT_NE(test::input_error([&] {
              merge_logs({first, run({3, 3})}, "merge");
            }).find("is of 3 shards, the first log is of 2"),
            std::string::npos);
}

TEST_F(Merge, RefusesAnIdentityThatNoSweepHas) {
  const auto refused = [&](const std::string& identity) {
    LogHeader header = test::small_header();
    header.identity = identity;
    const std::string path = folder_.file("strange.jsonl");
    test::write_text(path, to_line(header) + "\n");
    return test::input_error([&] { merge_logs({path}, "merge"); });
  };
  EXPECT_NE(refused("[1]").find("line 1/identity: [1] is not an object"), std::string::npos);
  EXPECT_NE(refused(R"({"shard": 5})").find("line 1/identity/shard: 5 is not a string"),
            std::string::npos);
  EXPECT_NE(refused(R"({"shard": "1/2147483647"})").find("is not a shard"), std::string::npos);
}

}  // namespace
}  // namespace fusescope::sweep
