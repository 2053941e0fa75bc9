// A log of 10,000 trials loads, resumes and summarises; how long that takes is printed, not judged.

#include <gtest/gtest.h>

#include <chrono>
#include <cstdio>

#include "fake_engine.hpp"
#include "sweep/exports.hpp"
#include "sweep/runner.hpp"
#include "sweep/summary.hpp"
#include "sweep_fixture.hpp"

namespace fusescope::sweep {
namespace {

TEST(Scale, TenThousandTrials) {
  Json document = test::small_sweep_document();
  document["axes"] = {{"dispatch_comm_sms", Json::array()}, {"combine_comm_sms", Json::array()}};
  for (int value = 1; value <= 100; ++value) {
    document["axes"]["dispatch_comm_sms"].push_back(value);
    document["axes"]["combine_comm_sms"].push_back(value);
  }
  const SweepConfig sweep = parse_sweep_config(document, "large.json");
  const Problem problem = test::small_problem();
  test::FakeEngine engine;
  const auto executor = make_in_process({&engine, &problem, sweep.measure, nullptr, "a test"});

  // The log is written in one go: what is timed is reading, not the disk's 10,000 confirmations.
  const test::TemporaryFolder folder;
  const std::string path = folder.file("trials.jsonl");
  const LogHeader header = test::small_header(sweep);
  { const TrialLog log(path, header); }
  std::string text = test::read_text(path);
  const SearchSpace space(sweep, engine.device());
  constexpr int kLogged = 9'990;
  for (int id = 0; id < kLogged; ++id) {
    Trial trial;
    trial.id = id;
    trial.config = space.at(id);
    trial.source = "made up by a test";
    trial.wall_us.assign(20, test::FakeEngine::wall_us(trial.config));
    trial.median_us = trial.wall_us[0];
    for (const char* step : {"gemm 1", "gemm 2", "dispatch head", "push drain", "final reduce"}) {
      trial.steps_us[step] = 123.456;
    }
    text += to_line(trial) + "\n";
  }
  test::write_text(path, text);

  const auto begin = std::chrono::steady_clock::now();
  const auto elapsed = [&] {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  };
  TrialLog log(path, header);
  std::printf("loaded after %.2f s\n", elapsed());
  const Outcome outcome = run_search(sweep, engine.device(), *executor, log, {});
  std::printf("resumed after %.2f s\n", elapsed());
  const std::string summary = summary_text(log.trials(), {});
  const std::string csv = to_csv(log.trials());
  std::printf("summarised after %.2f s\n", elapsed());

  EXPECT_EQ(outcome.found, kLogged);
  EXPECT_EQ(outcome.ran, 10);
  EXPECT_EQ(log.trials().size(), 10'000u);
  EXPECT_NE(summary.find("300 configs tie for the best"), std::string::npos) << summary;
  EXPECT_EQ(std::count(csv.begin(), csv.end(), '\n'), 10'001);
}

}  // namespace
}  // namespace fusescope::sweep
