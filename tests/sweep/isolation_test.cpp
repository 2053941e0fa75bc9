// What a config does to its process costs its trial and nothing else.

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include <array>
#include <cstdio>
#include <map>

#include "sweep/isolated_executor.hpp"
#include "sweep/runner.hpp"
#include "sweep_fixture.hpp"

namespace fusescope::sweep {
namespace {

// Deadlines that no machine is too slow for, but for those who want to see one pass.
WorkerOptions worker(const std::vector<std::string>& faults = {}) {
  WorkerOptions options;
  options.command = {FUSESCOPE_TEST_WORKER};
  options.open = {{"document", test::small_sweep_document()}, {"faults", faults}, {"sleep_ms", 0}};
  options.deadline_seconds = 300;
  options.startup_seconds = 300;
  options.silence_seconds = 300;
  options.max_seconds = 0;
  return options;
}

Trial planned(int comm_sms) {
  Trial trial;
  trial.config.dispatch_comm_sms = comm_sms;
  return trial;
}

TEST(Isolation, AWorkerSaysWhatItMeasuresOn) {
  const IsolatedExecutor executor(worker());
  EXPECT_EQ(executor.hello().engine, "fake");
  EXPECT_EQ(executor.hello().device.sms, 110);
  EXPECT_EQ(executor.hello().parallel_runs, 4);
}

TEST(Isolation, TrialsComeBackAsTheyWouldInProcess) {
  IsolatedExecutor executor(worker());
  Trial order = planned(24);
  order.id = 7;
  order.visit = 2;
  order.label = "a \"rung\"";
  order.kind = TrialKind::rung;
  const Trial trial = executor.execute(order, 0);
  EXPECT_EQ(trial.verdict, Verdict::ok);
  EXPECT_EQ(trial.id, 7);
  EXPECT_EQ(trial.visit, 2);
  EXPECT_EQ(trial.label, "a \"rung\"");
  EXPECT_EQ(trial.kind, TrialKind::rung);
  EXPECT_EQ(trial.config, order.config);
  EXPECT_EQ(trial.median_us, 1006);
  EXPECT_EQ(trial.source, "made up by a test");
  EXPECT_EQ(executor.replaced(), 0);
  EXPECT_EQ(executor.execute(planned(200), 0).verdict, Verdict::illegal);
  EXPECT_EQ(executor.replaced(), 0);
}

struct Injected {
  std::string fault;
  Verdict verdict;
  std::string reason;
  bool replaced;
};

class Faults : public testing::TestWithParam<Injected> {};

TEST_P(Faults, CostTheirTrialAndNothingElse) {
  WorkerOptions options = worker({GetParam().fault + ": dispatch_comm_sms == 8"});
  if (GetParam().verdict == Verdict::hang) {
    options.deadline_seconds = 1;  // the trials that do not hang are the first of their workers
  }
  IsolatedExecutor executor(options);
  EXPECT_EQ(executor.execute(planned(16), 0).verdict, Verdict::ok);
  const Trial failed = executor.execute(planned(8), 0);
  EXPECT_EQ(failed.verdict, GetParam().verdict);
  EXPECT_NE(failed.reason.find(GetParam().reason), std::string::npos) << failed.reason;
  EXPECT_TRUE(failed.wall_us.empty());
  EXPECT_EQ(executor.replaced(), GetParam().replaced ? 1 : 0);
  const Trial after = executor.execute(planned(24), 0);
  EXPECT_EQ(after.verdict, Verdict::ok);
  EXPECT_EQ(after.median_us, 1006);
}

INSTANTIATE_TEST_SUITE_P(
    OfEachKind, Faults,
    testing::Values(Injected{"hang", Verdict::hang, "had not ended at its deadline of 1 s", true},
                    Injected{"segfault", Verdict::crashed,
                             "killed by signal 11 (Segmentation fault)", true},
                    Injected{"exit", Verdict::crashed, "ended by itself with exit code 3", true},
                    Injected{"memory", Verdict::out_of_memory, "memory did not suffice", true},
                    Injected{"launch", Verdict::launch_failure, "cudaErrorLaunchFailure", true},
                    Injected{"wrong_output", Verdict::wrong_output, "wrong outputs", false}),
    [](const testing::TestParamInfo<Injected>& each) { return each.param.fault; });

// Whatever the baseline took, the deadline is no shorter than 2 s and what the trial may rest.
TEST(Isolation, RestsCountIntoTheDeadline) {
  WorkerOptions options = worker({"hang: dispatch_comm_sms == 8"});
  options.deadline_seconds = 0;
  options.rest_seconds = 1.5;
  IsolatedExecutor executor(options);
  EXPECT_EQ(executor.execute(planned(16), 0).verdict, Verdict::ok);
  const Trial failed = executor.execute(planned(8), 0);
  EXPECT_EQ(failed.verdict, Verdict::hang);
  double deadline = 0;
  ASSERT_EQ(std::sscanf(failed.reason.c_str(), "had not ended at its deadline of %lf s", &deadline),
            1)
      << failed.reason;
  EXPECT_GE(deadline, 3.5);
}

TEST(Isolation, AProcessThatStopsIsNoticedByItsSilence) {
  WorkerOptions options = worker({"stop: dispatch_comm_sms == 8"});
  options.silence_seconds = 5;  // ten beats of those that are well
  IsolatedExecutor executor(options);
  const Trial trial = executor.execute(planned(8), 0);
  EXPECT_EQ(trial.verdict, Verdict::hang);
  EXPECT_NE(trial.reason.find("no sign of life"), std::string::npos) << trial.reason;
  EXPECT_EQ(executor.execute(planned(24), 0).verdict, Verdict::ok);
}

// What has no heart yet is not silent.
TEST(Isolation, AProgramThatTakesItsTimeToLoadIsWaitedFor) {
  WorkerOptions options = worker();
  options.command = {"/bin/sh", "-c", "sleep 0.2; echo '{\"failed\": \"no device\"}' >&3"};
  options.silence_seconds = 0.001;
  try {
    const IsolatedExecutor executor(options);
    FAIL() << "it opened";
  } catch (const CheckFailure& failure) {
    EXPECT_STREQ(failure.what(), "a worker did not start: no device");
  }
}

TEST(Isolation, WhatHasComeCountsHoweverLateItIsLookedAt) {
  std::array<int, 2> sockets = {};
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, sockets.data()), 0);
  WorkerChannel sweep(sockets[0]);
  auto worker = std::make_unique<WorkerChannel>(sockets[1]);
  const auto past = std::chrono::steady_clock::now();
  std::string line;
  EXPECT_EQ(sweep.receive(line, past), WorkerChannel::Got::late);
  worker->send("one");
  worker->send("two");
  for (const char* sent : {"one", "two"}) {
    EXPECT_EQ(sweep.receive(line, past), WorkerChannel::Got::line);
    EXPECT_EQ(line, sent);
  }
  EXPECT_EQ(sweep.receive(line, past), WorkerChannel::Got::late);
  worker.reset();
  EXPECT_EQ(sweep.receive(line, past), WorkerChannel::Got::closed);
}

TEST(Isolation, AWorkerThatCannotOpenEndsTheSweepWithTheReason) {
  WorkerOptions options = worker();
  options.open["die_opening"] = true;
  EXPECT_THROW(IsolatedExecutor{options}, CheckFailure);
  options = worker();
  options.open["document"]["axes"]["tokens_per_blok"] = {1};
  EXPECT_NE(test::input_error([&] { IsolatedExecutor{options}; }).find("tokens_per_blok"),
            std::string::npos);
  options = worker();
  options.command = {"/no/such/program"};
  EXPECT_THROW(IsolatedExecutor{options}, CheckFailure);
}

TEST(Isolation, ASweepGoesThroughFaultsWithSeveralWorkers) {
  const test::TemporaryFolder folder;
  const SweepConfig sweep = test::small_sweep();
  WorkerOptions options = worker({"segfault: tokens_per_block == 8 and all_hands",
                                  "exit: tokens_per_block == 12 and not all_hands"});
  options.workers = 3;
  IsolatedExecutor executor(options);
  TrialLog log(folder.file("trials.jsonl"), test::small_header(sweep));
  RunnerOptions runner;
  runner.jobs = 3;
  runner.base = sweep.base;
  runner.base_every = 10;
  const Outcome outcome = run_search(sweep, executor.hello().device, executor, log, runner);
  EXPECT_EQ(outcome.ending, Ending::complete);
  EXPECT_EQ(outcome.ran, 24);
  EXPECT_GE(outcome.base_ran, 3);  // at the start, by count, and after workers were replaced
  std::map<Verdict, int> verdicts;
  for (const Trial& trial : log.trials()) {
    verdicts[trial.verdict] += trial.kind == TrialKind::search ? 1 : 0;
  }
  EXPECT_EQ(verdicts[Verdict::crashed], 8);
  EXPECT_EQ(verdicts[Verdict::ok], 16);
  EXPECT_EQ(executor.replaced(), 8);
}

// Whether the process of a /proc entry is a worker; one that has ended has no command line.
bool is_worker(const std::string& entry) {
  return test::read_text(entry + "/cmdline").starts_with(FUSESCOPE_TEST_WORKER);
}

// The /proc entry of a worker that `parent` started; "" if there is none.
std::string worker_of(pid_t parent) {
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    const std::string path = entry.path().string();
    if (is_worker(path) &&
        test::read_text(path + "/status").find("PPid:\t" + std::to_string(parent) + "\n") !=
            std::string::npos) {
      return path;
    }
  }
  return "";
}

TEST(Isolation, NoWorkerOutlivesItsSweep) {
  const test::TemporaryFolder folder;
  const pid_t child = ::fork();
  if (child == 0) {  // a sweep that is killed while a trial hangs
    IsolatedExecutor executor(worker({"hang: dispatch_comm_sms == 8"}));
    executor.execute(planned(16), 0);
    std::ofstream(folder.file("pid")) << ::getpid();
    executor.execute(planned(8), 0);
    ::_exit(0);
  }
  while (test::read_text(folder.file("pid")).empty()) {
    ASSERT_EQ(::waitpid(child, nullptr, WNOHANG), 0);
    ::usleep(5000);
  }
  const std::string worker_entry = worker_of(child);
  ASSERT_NE(worker_entry, "");
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  while (is_worker(worker_entry)) {  // one that outlives it runs into the test's time limit
    ::usleep(5000);
  }
}

}  // namespace
}  // namespace fusescope::sweep
