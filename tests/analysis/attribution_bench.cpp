// What an attribution costs: every trial of a sweep pays it.

#include <benchmark/benchmark.h>

#include "analysis/summary.hpp"
#include "tests/timeline/tiny_layer.hpp"

namespace fusescope::analysis {
namespace {

const timeline::Timeline& seed_sized() {
  static const timeline::Timeline timeline = timeline::tiny_layer(timeline::seed_sized());
  return timeline;
}

template <typename View>
void measure(benchmark::State& state, View view) {
  const timeline::Timeline& timeline = seed_sized();
  for (auto _ : state) {
    benchmark::DoNotOptimize(view(timeline));
  }
  state.counters["events"] = static_cast<double>(timeline.events.size());
}

void BM_CriticalPath(benchmark::State& state) {
  measure(state, [](const timeline::Timeline& timeline) { return critical_path(timeline); });
}
void BM_Accounting(benchmark::State& state) {
  measure(state, [](const timeline::Timeline& timeline) { return account(timeline); });
}
void BM_Attribution(benchmark::State& state) {
  measure(state, [](const timeline::Timeline& timeline) { return attribute(timeline); });
}

BENCHMARK(BM_CriticalPath)->Unit(benchmark::kMillisecond);
BENCHMARK(BM_Accounting)->Unit(benchmark::kMillisecond);
BENCHMARK(BM_Attribution)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace fusescope::analysis
