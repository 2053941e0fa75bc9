// What a log of 10,000 simulated trials costs: to resume, to merge from shards, to summarise and export.

#include <benchmark/benchmark.h>

#include "fake_engine.hpp"
#include "sweep/exports.hpp"
#include "sweep/merge.hpp"
#include "sweep/runner.hpp"
#include "sweep/summary.hpp"
#include "sweep_fixture.hpp"

namespace fusescope::sweep {
namespace {

constexpr int kShards = 8;

// 100 x 100 configs with 20 samples and 8 steps each; the logs are written in one go.
class LargeSweep {
 public:
  LargeSweep() {
    const SearchSpace space(sweep, device);
    std::vector<std::string> shards(kShards);
    std::string whole = to_line(header({1, 1})) + "\n";
    for (int shard = 1; shard <= kShards; ++shard) {
      shards[static_cast<std::size_t>(shard - 1)] = to_line(header({shard, kShards})) + "\n";
    }
    for (int id = 0; id < 10'000; ++id) {
      const std::string line = to_line(trial(id, space.at(id))) + "\n";
      whole += line;
      shards[static_cast<std::size_t>(id % kShards)] += line;
    }
    test::write_text(whole_path, whole);
    for (int shard = 1; shard <= kShards; ++shard) {
      shard_paths.push_back(folder.file("shard-" + std::to_string(shard)));
      test::write_text(shard_paths.back(), shards[static_cast<std::size_t>(shard - 1)]);
    }
  }

  LogHeader header(const Shard& shard) const {
    SweepConfig config = sweep;
    config.shard = shard;
    return test::small_header(config);
  }

  test::TemporaryFolder folder;
  SweepConfig sweep = parse_sweep_config(document(), "large.json");
  DeviceLimits device{"fake device", 110, 101376};
  std::string whole_path = folder.file("trials.jsonl");
  std::vector<std::string> shard_paths;

 private:
  static Json document() {
    Json document = test::small_sweep_document();
    document["axes"] = {{"dispatch_comm_sms", Json::array()}, {"combine_comm_sms", Json::array()}};
    for (int value = 1; value <= 100; ++value) {
      document["axes"]["dispatch_comm_sms"].push_back(value);
      document["axes"]["combine_comm_sms"].push_back(value);
    }
    return document;
  }

  static Trial trial(int id, const Config& config) {
    Trial trial;
    trial.id = id;
    trial.config = config;
    trial.source = "made up by a benchmark";
    for (int i = 0; i < 20; ++i) {
      trial.wall_us.push_back(test::FakeEngine::wall_us(config) + i * 0.125);
    }
    set_medians(trial);
    for (const char* step : {"gemm 1", "gemm 2", "dispatch head", "dispatch order", "push drain",
                             "watermark", "final reduce", "launch gap"}) {
      trial.steps_us[step] = 123.456;
    }
    return trial;
  }
};

const LargeSweep& large() {
  static const LargeSweep kSweep;
  return kSweep;
}

void resume(benchmark::State& state) {
  const LargeSweep& data = large();
  test::FakeEngine engine;
  const Problem problem = test::small_problem();
  const auto executor = make_in_process({&engine, &problem, data.sweep.measure, {}, "a test"});
  for (auto unused : state) {
    TrialLog log(data.whole_path, data.header({1, 1}));
    const Outcome outcome = run_search(data.sweep, data.device, *executor, log, {});
    if (outcome.found != 10'000 || outcome.ran != 0) {
      state.SkipWithError("trials were lost");
    }
  }
}
BENCHMARK(resume)->Unit(benchmark::kMillisecond);

void merge(benchmark::State& state) {
  for (auto unused : state) {
    const Merged merged = merge_logs(large().shard_paths, "a benchmark");
    if (merged.trials.size() != 10'000) {
      state.SkipWithError("trials were lost");
    }
    benchmark::DoNotOptimize(to_text(merged));
  }
}
BENCHMARK(merge)->Unit(benchmark::kMillisecond);

void summarise(benchmark::State& state) {
  const LogContents log = read_trial_log(large().whole_path);
  for (auto unused : state) {
    const std::vector<Trial> results = latest(log.trials);
    benchmark::DoNotOptimize(summary_text(results, {}));
    benchmark::DoNotOptimize(to_csv(results));
    benchmark::DoNotOptimize(to_t4(results).dump());
  }
}
BENCHMARK(summarise)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace fusescope::sweep

BENCHMARK_MAIN();
