// What a rebuild of the schedule tables costs on the host, by builder, and what the checks cost.
#include <benchmark/benchmark.h>

#include "layer/check.hpp"
#include "layer/problem.hpp"
#include "layer/tables.hpp"

namespace fusescope {
namespace {

const Problem& seed_problem() {
  static const Problem problem = make_problem(load_shape("seed-tp4"), parse_routing("zipf:1.2"));
  return problem;
}

void golden(benchmark::State& state) {
  const Problem& problem = seed_problem();
  for (auto _ : state) {
    benchmark::DoNotOptimize(
        build_tables_golden(problem.shape, problem.routing, SlotOrder::by_token, 0));
  }
}
BENCHMARK(golden)->Unit(benchmark::kMicrosecond);

void thrust_system(benchmark::State& state, ThrustSystem system) {
  const Problem& problem = seed_problem();
  for (auto _ : state) {
    benchmark::DoNotOptimize(
        build_tables_thrust(problem.shape, problem.routing, SlotOrder::by_token, 0, system));
  }
}
BENCHMARK_CAPTURE(thrust_system, cpp, ThrustSystem::cpp)->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(thrust_system, omp, ThrustSystem::omp)
    ->Unit(benchmark::kMicrosecond)
    ->UseRealTime();

void generate(benchmark::State& state, const char* routing) {
  const Shape shape = load_shape("seed-tp4");
  for (auto _ : state) {
    benchmark::DoNotOptimize(make_routing(parse_routing(routing), shape));
  }
}
BENCHMARK_CAPTURE(generate, balanced, "balanced")->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(generate, zipf, "zipf:1.2")->Unit(benchmark::kMicrosecond);

void whole_check(benchmark::State& state) {
  for (auto _ : state) {
    benchmark::DoNotOptimize(check_layer(seed_problem(), Config{}));
  }
}
BENCHMARK(whole_check)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace fusescope

BENCHMARK_MAIN();
