// What a simulation costs on one core: the event core alone, and the seed's layer with and without a
// timeline. Run with --benchmark_format=json to compare builds.
#include <benchmark/benchmark.h>

#include "engine/sim/kernels.hpp"
#include "engine/sim/simulate.hpp"

namespace {

using namespace fusescope;
using namespace fusescope::engine::sim;

struct Core {
  Scheduler scheduler;
  FramePool& frame_pool() { return scheduler.frame_pool(); }
};

Task sleeper(Core& core, int naps, Time length) {
  for (int nap = 0; nap < naps; ++nap) {
    co_await core.scheduler.until(core.scheduler.now() + length);
  }
}

// Steps of 512 coroutines that sleep for different times: queue and resumption, nothing else.
void event_core(benchmark::State& state) {
  std::uint64_t steps = 0;
  for (auto _ : state) {
    Core core;
    for (int block = 0; block < 512; ++block) {
      core.scheduler.spawn(sleeper(core, 100, 1000 + block * 7));
    }
    core.scheduler.run();
    steps += core.scheduler.steps_run();
  }
  state.counters["seconds_per_step"] = benchmark::Counter(
      static_cast<double>(steps), benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
}
BENCHMARK(event_core)->Unit(benchmark::kMillisecond);

void seed_layer(benchmark::State& state, const char* profile_name, LayerForm form, bool timeline) {
  const Problem problem = make_problem(load_shape("seed-tp4"), parse_routing("uniform"));
  const Profile profile = load_profile(profile_name);
  Config config;
  config.form = form;
  std::uint64_t steps = 0;
  for (auto _ : state) {
    const Iteration iteration =
        simulate(problem, config, profile, tables_for(problem, config), 1, timeline);
    steps += iteration.steps;
    benchmark::DoNotOptimize(iteration.rank_wall.data());
  }
  state.counters["steps"] =
      benchmark::Counter(static_cast<double>(steps), benchmark::Counter::kAvgIterations);
}
BENCHMARK_CAPTURE(seed_layer, pcie_fused, kSeedProfile, LayerForm::fused, false)
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(seed_layer, pcie_fused_timeline, kSeedProfile, LayerForm::fused, true)
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(seed_layer, pcie_serial, kSeedProfile, LayerForm::serial, false)
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(seed_layer, nvlink_fused, "h200-nvlink", LayerForm::fused, false)
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(seed_layer, nvlink_fused_timeline, "h200-nvlink", LayerForm::fused, true)
    ->Unit(benchmark::kMillisecond);

void tables(benchmark::State& state) {
  const Problem problem = make_problem(load_shape("seed-tp4"), parse_routing("uniform"));
  for (auto _ : state) {
    benchmark::DoNotOptimize(tables_for(problem, Config{}).data());
  }
}
BENCHMARK(tables)->Unit(benchmark::kMillisecond);

}  // namespace

BENCHMARK_MAIN();
