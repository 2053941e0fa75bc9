#pragma once
// What the tests of the third kernel share: shapes, a checked run, names for failures.

#include "engine/cuda/cuda_test_support.hpp"
#include "engine/cuda/projection/runner.hpp"

namespace fusescope::engine::cuda::projection::test {

using cuda::test::first_difference;
using cuda::test::kTestDeadlineNs;
using cuda::test::Outputs;
using cuda::test::usable_devices;

// Two roundings to bf16, of each partial row and of the sum: 1.5e-3 each, whatever the number of ranks.
inline constexpr double kMaxError = 3e-3;
// Of the worst row in itself: rows of 256 columns and more stay near the average. A lost rank's part is
// off by 0.3 and more, a single lost element of 7168 by 0.01.
inline constexpr double kMaxWorstRow = 6e-3;

inline Shape make_shape(int ranks, int tokens_per_rank, int hidden, int rank_depth) {
  return {ranks, tokens_per_rank, hidden, ranks * rank_depth};
}

inline std::string named(const Config& config) {
  const std::string differs = describe(config);
  return differs.empty() ? "the default config" : "the config \"" + differs + "\"";
}

inline std::string what_is_wrong(Runner& runner) {
  const OutputError error = runner.output_error();
  if (error.relative <= kMaxError && error.worst_row <= kMaxWorstRow) {
    return "";
  }
  char text[160];
  std::snprintf(text, sizeof(text), "relative error %.2e; worst row %.2e, rank %d token %d",
                error.relative, error.worst_row, error.worst_rank, error.worst_token);
  return text;
}

// Poisoned buffers, one iteration, its outputs against the reference: "" or what is wrong.
inline std::string checked_run(Runner& runner, const Config& config) {
  runner.configure(config);
  runner.memory().poison();
  runner.run_once();
  return what_is_wrong(runner);
}

// With as many pushers, and rows a push, as the GEMM's shared memory has room for: mma_small leaves less.
inline Config fitting(Config config, const Shape& shape, const std::vector<Device>& devices) {
  while (!why_illegal(shape, config, limits_of(devices.front())).empty()) {
    int& more = config.pushers > 1 ? config.pushers : config.rows_per_push;
    if (more <= 1) {
      break;
    }
    more /= 2;
  }
  return config;
}

inline Outputs read_outputs(Runner& runner) {
  Outputs outputs;
  outputs.hidden = runner.memory().shape().hidden;
  for (int r = 0; r < runner.memory().ranks(); ++r) {
    outputs.by_rank.push_back(runner.memory().read_output(r));
  }
  return outputs;
}

}  // namespace fusescope::engine::cuda::projection::test
