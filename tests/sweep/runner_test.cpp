#include "sweep/runner.hpp"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <csignal>
#include <set>
#include <thread>

#include "fake_engine.hpp"
#include "sweep/summary.hpp"
#include "sweep_fixture.hpp"

namespace fusescope::sweep {
namespace {

using test::FakeEngine;

class RunnerTest : public testing::Test {
 protected:
  Outcome run(const RunnerOptions& options = {}) {
    TrialLog log(folder_.file("trials.jsonl"), test::small_header(sweep_));
    const auto executor =
        make_in_process({&engine_, &problem_, sweep_.measure, analyse_, "a test"});
    const Outcome outcome = run_search(sweep_, engine_.device(), *executor, log, options);
    trials_ = log.trials();
    return outcome;
  }

  void resweep(const Json& patch) {
    Json document = test::small_sweep_document();
    document.merge_patch(patch);
    sweep_ = parse_sweep_config(document, "small.json");
  }

  test::TemporaryFolder folder_;
  FakeEngine engine_;
  SweepConfig sweep_ = test::small_sweep();
  Problem problem_ = test::small_problem();
  Analyse analyse_;
  std::vector<Trial> trials_;
};

TEST_F(RunnerTest, RunsEveryConfigOnceOnSeveralThreads) {
  RunnerOptions options;
  options.jobs = 4;
  const Outcome outcome = run(options);
  EXPECT_EQ(outcome.ending, Ending::complete);
  EXPECT_EQ(outcome.ran, 24);
  EXPECT_EQ(outcome.planned, 24);
  std::set<int> ids;
  for (const Trial& trial : trials_) {
    ids.insert(trial.id);
    EXPECT_EQ(trial.verdict, Verdict::ok);
    EXPECT_EQ(trial.median_us, FakeEngine::wall_us(trial.config));
    EXPECT_EQ(trial.half_ci_us, 0);
    EXPECT_EQ(trial.source, "made up by a test");
  }
  EXPECT_EQ(ids.size(), 24u);
  EXPECT_EQ(*ids.rbegin(), 23);
  const std::optional<Trial> best = best_trial(trials_);
  ASSERT_TRUE(best);
  EXPECT_EQ(best->config.dispatch_comm_sms, 24);
  EXPECT_EQ(best->config.tokens_per_block, 4);
  EXPECT_TRUE(best->config.all_hands);
}

TEST_F(RunnerTest, TheEngineIsAskedToRestAsTheSweepSays) {
  run();
  EXPECT_EQ(engine_.rest_ms, 0);
  resweep({{"name", "small"}, {"measure", {{"rest_ms", 10}}}});
  std::filesystem::remove(folder_.file("trials.jsonl"));
  run();
  EXPECT_EQ(engine_.rest_ms, 10);
}

TEST_F(RunnerTest, TrialsCarryTheirMediansInterval) {
  engine_.samples = 21;
  engine_.spread_us = 2;
  run();
  EXPECT_EQ(trials_[0].wall_us.size(), 21u);
  EXPECT_EQ(trials_[0].half_ci_us, 2);
  EXPECT_EQ(trials_[0].raw_median_us, trials_[0].median_us);
}

TEST_F(RunnerTest, WritesIllegalConfigsDownWithTheRule) {
  resweep({{"axes", {{"dispatch_comm_sms", {16, 110, 200}}}}});
  const Outcome outcome = run();
  EXPECT_EQ(outcome.ran, 18);
  EXPECT_EQ(engine_.runs, 6);
  int illegal = 0;
  for (const Trial& trial : trials_) {
    if (trial.config.dispatch_comm_sms > 16) {
      ++illegal;
      EXPECT_EQ(trial.verdict, Verdict::illegal);
      EXPECT_NE(trial.reason.find("leaves no compute SM on a 110-SM device"), std::string::npos);
      EXPECT_TRUE(trial.wall_us.empty());
    }
  }
  EXPECT_EQ(illegal, 12);
}

TEST_F(RunnerTest, GoesOnAfterWhateverATrialThrows) {
  engine_.misbehave = [](const Config& config) {
    if (config.dispatch_comm_sms == 8) {
      throw CheckFailure("rank 1 block 3: gate open expected 128, seen 97");
    }
    if (config.dispatch_comm_sms == 16) {
      throw InputError({"", "", "not on this machine", ""});
    }
    if (config.dispatch_comm_sms == 32) {
      throw 42;
    }
  };
  RunnerOptions options;
  options.jobs = 3;
  const Outcome outcome = run(options);
  EXPECT_EQ(outcome.ran, 24);
  for (const Trial& trial : trials_) {
    switch (trial.config.dispatch_comm_sms) {
      case 8:
        EXPECT_EQ(trial.verdict, Verdict::aborted);
        EXPECT_EQ(trial.reason, "rank 1 block 3: gate open expected 128, seen 97");
        break;
      case 16:
        EXPECT_EQ(trial.verdict, Verdict::illegal);
        break;
      case 32:
        EXPECT_EQ(trial.verdict, Verdict::aborted);
        break;
      default:
        EXPECT_EQ(trial.verdict, Verdict::ok);
    }
  }
}

TEST_F(RunnerTest, NoSampleAndNonsenseSamplesAreFailures) {
  engine_.samples = 0;
  resweep({{"search", {{"strategy", "grid"}, {"budget", {{"trials", 1}}}}}});
  run();
  EXPECT_EQ(trials_[0].verdict, Verdict::aborted);
  EXPECT_EQ(trials_[0].reason, "the engine returned no sample");
  engine_.samples = 1;
  engine_.spread_us = std::numeric_limits<double>::infinity();
  resweep({{"search", {{"strategy", "grid"}, {"budget", {{"trials", 2}}}}}});
  run();
  EXPECT_EQ(trials_[1].verdict, Verdict::aborted);
  EXPECT_TRUE(trials_[1].wall_us.empty());
}

TEST_F(RunnerTest, StopsBetweenTrialsAndGoesOnLater) {
  std::atomic<bool> stop = false;
  std::atomic<int> begun = 0;
  engine_.misbehave = [&](const Config&) {
    if (++begun > 5) {  // under way when the sweep is stopped
      stop.wait(false);
    }
  };
  RunnerOptions options;
  options.jobs = 2;
  options.stop = &stop;
  options.progress = [&](const Progress& progress) {
    if (progress.done == 5) {
      stop = true;
      stop.notify_all();
    }
  };
  const Outcome first = run(options);
  EXPECT_EQ(first.ending, Ending::stopped);
  EXPECT_EQ(first.ran, begun);  // what was under way went on to its end
  EXPECT_GE(first.ran, 5);
  EXPECT_LE(first.ran, 5 + options.jobs);
  const Outcome second = run();
  EXPECT_EQ(second.found, first.ran);
  EXPECT_EQ(second.ran, 24 - first.ran);
  EXPECT_EQ(engine_.runs, 24);
}

TEST_F(RunnerTest, ABudgetOfTrialsCanBeExtended) {
  resweep({{"search", {{"strategy", "random"}, {"budget", {{"trials", 7}}}}}});
  EXPECT_EQ(run().ran, 7);
  EXPECT_EQ(run().ran, 0);
  resweep({{"search", {{"strategy", "random"}, {"budget", {{"trials", 10}}}}}});
  const Outcome outcome = run();
  EXPECT_EQ(outcome.found, 7);
  EXPECT_EQ(outcome.ran, 3);
}

// The sixth config is held until the seventh, the first to be better again, has ended: in the order of their
// ends the search would be over with the twelfth.
TEST_F(RunnerTest, ABudgetOfImprovementEndsAtTheSameTrialInWhateverOrderTrialsEnd) {
  resweep({{"search",
            {{"strategy", "grid"},
             {"budget", {{"improvement", {{"at_least", 0.05}, {"trials", 6}}}}}}}});
  std::atomic<bool> seventh_ended = false;
  engine_.misbehave = [&](const Config& config) {
    if (config.dispatch_comm_sms == 8 && config.tokens_per_block == 12 && !config.all_hands) {
      seventh_ended.wait(false);
    }
  };
  RunnerOptions options;
  options.jobs = 2;
  options.progress = [&](const Progress& progress) {
    if (progress.last->id == 6) {
      seventh_ended = true;
      seventh_ended.notify_all();
    }
  };
  const Outcome outcome = run(options);
  EXPECT_EQ(outcome.ending, Ending::no_progress);
  EXPECT_EQ(outcome.ran, 19);  // the thirteenth is the best, and six more
  EXPECT_EQ(run().ran, 0);
}

TEST_F(RunnerTest, ABudgetOfSecondsEndsTheSweep) {
  engine_.misbehave = [](const Config&) {
    std::this_thread::sleep_for(std::chrono::milliseconds(3));
  };
  resweep({{"search", {{"strategy", "grid"}, {"budget", {{"seconds", 0.001}}}}}});
  const Outcome outcome = run();
  EXPECT_EQ(outcome.ending, Ending::seconds_spent);
  EXPECT_LE(outcome.ran, 1);  // 0 where the machine was busy for all of the budget
}

TEST_F(RunnerTest, ProgressCountsTheLogsTrialsAndKnowsTheirBest) {
  resweep({{"search", {{"strategy", "grid"}, {"budget", {{"trials", 16}}}}}});
  run();
  sweep_ = test::small_sweep();
  std::vector<long long> done;
  RunnerOptions options;
  options.progress = [&](const Progress& progress) {
    done.push_back(progress.done);
    EXPECT_EQ(progress.planned, 24);
    ASSERT_NE(progress.best, nullptr);
    EXPECT_EQ(progress.best->id, 12);  // in the log from the first run
  };
  run(options);
  EXPECT_EQ(done, (std::vector<long long>{17, 18, 19, 20, 21, 22, 23, 24}));
}

TEST_F(RunnerTest, LabelledConfigsRunOncePerLabelAndConfig) {
  TrialLog log(folder_.file("trials.jsonl"), test::small_header(sweep_));
  const auto executor = make_in_process({&engine_, &problem_, sweep_.measure, nullptr, "a test"});
  Config fast;
  fast.dispatch_comm_sms = 24;
  const auto rung = [](const std::string& label, const Config& config) {
    return Given{TrialKind::rung, label, config, 0};
  };
  const auto run = [&](const std::vector<Given>& rungs) {
    return run_given(rungs, 0, sweep_.measure, *executor, log, {}).ran;
  };
  EXPECT_EQ(run({rung("first", {}), rung("same", {}), rung("tuned", fast)}), 3);
  EXPECT_EQ(run({rung("first", {}), rung("same", {}), rung("tuned", fast)}), 0);
  Config faster = fast;
  faster.tokens_per_block = 4;
  EXPECT_EQ(run({rung("first", {}), rung("same", {}), rung("tuned", faster)}), 1);
  EXPECT_EQ(latest(log.trials()).size(), 3u);
  EXPECT_EQ(latest(log.trials())[2].config, faster);
  EXPECT_FALSE(best_trial(log.trials()));  // rungs take no part in the search
}

TEST_F(RunnerTest, EndsWhenTheLogCannotBeWritten) {
  struct Limit {
    Limit() {
      std::signal(SIGXFSZ, SIG_IGN);
      ::getrlimit(RLIMIT_FSIZE, &before);
      rlimit small = before;
      small.rlim_cur = 4096;
      ::setrlimit(RLIMIT_FSIZE, &small);
    }
    ~Limit() { ::setrlimit(RLIMIT_FSIZE, &before); }
    rlimit before{};
  };
  std::string message;
  {
    const Limit limit;
    RunnerOptions options;
    options.jobs = 3;
    message = test::input_error([&] { run(options); });
  }
  EXPECT_NE(message.find("trials.jsonl: cannot be written: File too large"), std::string::npos)
      << message;
  // What was logged before is whole, and the sweep goes on from there.
  const LogContents contents = read_trial_log(folder_.file("trials.jsonl"));
  EXPECT_EQ(contents.torn, "");
  const Outcome outcome = run();
  EXPECT_EQ(outcome.found, static_cast<long long>(contents.trials.size()));
  EXPECT_EQ(outcome.found + outcome.ran, 24);
}

}  // namespace
}  // namespace fusescope::sweep
