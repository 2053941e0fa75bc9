#pragma once
// What the tests of the cuda engine share: devices or a skip, small problems, a runner.

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "engine/cuda/devices.hpp"
#include "engine/cuda/layer_runner.hpp"
#include "engine/cuda/verifier.hpp"
#include "layer/gemm_path.hpp"
#include "layer/problem.hpp"
#include "layer/row_tiles.hpp"

namespace fusescope::engine::cuda::test {

// Of all outputs: bf16 through two GEMMs, an activation, a combine and a reduction lands near 4e-3.
inline constexpr double kMaxRelativeError = 6e-3;
// Of the worst row in itself, so that one wrong row among thousands is seen. A row has no other rows to
// average over: where one of its intermediates outweighs the rest, that one's roundings (gate, up,
// product: 3.3 x 2^-8 in the worst case, the activation's slope included) are the row's; the roundings
// after that (partial rows, planes, output) still average over the columns to 2e-3 each at most. A lost
// row or a row of another token is off by 0.3 and more, a single lost element of 4096 by 0.02.
inline constexpr double kMaxRowError = 1.6e-2;
// Generous, because sanitizers are slow; seconds from the environment where even that is too little.
inline const std::uint64_t kTestDeadlineNs = [] {
  const char* seconds = std::getenv("FUSESCOPE_TEST_DEADLINE_S");
  return 1'000'000'000 * (seconds == nullptr ? 30 : std::strtoull(seconds, nullptr, 10));
}();

inline std::vector<Device> usable_devices() {
  std::vector<Device> usable;
  for (const Device& device : find_devices()) {
    if (device.lacks.empty()) {
      usable.push_back(device);
    }
  }
  return usable;
}

// Tests take the first `count` devices, with peer access, or are skipped.
#define FUSESCOPE_NEED_DEVICES(name, count)                                               \
  std::vector<::fusescope::engine::cuda::Device> name = usable_devices();                 \
  if (static_cast<int>(name.size()) < (count)) {                                          \
    GTEST_SKIP() << "needs " << (count) << " usable GPUs, and there are " << name.size(); \
  }                                                                                       \
  name.resize(static_cast<std::size_t>(count));                                           \
  enable_peer_access(name)

// Tiles by row steps for which GEMMs are built; none of them gathers.
inline constexpr std::array kTilesByRowSteps = {TileShape::m160n256, TileShape::m288n128};
inline constexpr int kTilesTested = 2 + static_cast<int>(kTilesByRowSteps.size());

// Number 0 to kTilesTested - 1: automatic, 128 columns, then those by row steps.
inline TileShape tested_tile(int number) {
  constexpr std::array kWhole = {TileShape::automatic, TileShape::m128n128};
  return number < 2 ? kWhole.at(static_cast<std::size_t>(number))
                    : kTilesByRowSteps.at(static_cast<std::size_t>(number - 2));
}

inline bool is_by_row_steps(TileShape tile) {
  return row_grouping(tile).row_step > 0;
}

// Kernel 1 gathers, and tiles go by row steps, with wgmma alone. Where the GEMMs run without, for want of it
// or because FUSESCOPE_GEMM asks for that, what a test would gather is scattered, in tiles of whole row blocks.
inline Config as_built(Config config, const std::vector<Device>& devices) {
  if (with_gemm_chosen(config, limits_of(devices.front())).gemm != GemmPath::wgmma) {
    if (is_by_row_steps(config.tile)) {
      config.tile = TileShape::automatic;
    }
    config.dispatch = Dispatch::scatter;
  }
  return config;
}

inline Shape make_shape(int ranks, int tokens_per_rank, int hidden, int experts, int topk,
                        int intermediate) {
  Shape shape;
  shape.name = "test";
  shape.ranks = ranks;
  shape.tokens_per_rank = tokens_per_rank;
  shape.hidden = hidden;
  shape.experts = experts;
  shape.topk = topk;
  shape.intermediate = intermediate;
  shape.source = "a test";
  return shape;
}

// Skew as real routers show it: popular experts follow a power law, neighbouring tokens share
// experts, and some experts stay empty. Written as a file, because files are how real routing comes.
inline std::string write_skewed_npy(const Shape& shape, std::uint64_t seed) {
  const std::string path =
      (std::filesystem::path(testing::TempDir()) /
       ("skewed_" + std::to_string(shape.experts) + "_" + std::to_string(shape.topk) + ".npy"))
          .string();
  std::vector<std::int32_t> ids;
  std::uint64_t state = seed * 0x9E3779B97F4A7C15ULL + 1;
  const auto uniform = [&] {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return static_cast<double>(state >> 11) * 0x1p-53;
  };
  std::vector<std::int32_t> before;
  for (int token = 0; token < shape.tokens(); ++token) {
    std::vector<std::int32_t> chosen;
    while (static_cast<int>(chosen.size()) < shape.topk) {
      auto expert = static_cast<std::int32_t>(shape.experts * std::pow(uniform(), 2.5));
      if (!before.empty() && uniform() < 0.3) {
        expert = before[static_cast<std::size_t>(uniform() * shape.topk)];
      }
      if (std::find(chosen.begin(), chosen.end(), expert) == chosen.end()) {
        chosen.push_back(expert);
      }
    }
    ids.insert(ids.end(), chosen.begin(), chosen.end());
    before = chosen;
  }
  std::string header = "{'descr': '<i4', 'fortran_order': False, 'shape': (" +
                       std::to_string(shape.tokens()) + ", " + std::to_string(shape.topk) + "), }";
  header.resize((10 + header.size() + 64) / 64 * 64 - 10 - 1, ' ');
  header += '\n';
  std::ofstream file(path, std::ios::binary);
  const auto length = static_cast<std::uint16_t>(header.size());
  file.write("\x93NUMPY\x01\x00", 8);
  file.write(reinterpret_cast<const char*>(&length), 2);
  file << header;
  file.write(reinterpret_cast<const char*>(ids.data()),
             static_cast<std::streamsize>(ids.size() * sizeof(std::int32_t)));
  return path;
}

// The routings of the end-to-end matrix, by name.
inline std::vector<std::string> matrix_routings() {
  return {"balanced", "uniform", "zipf", "hot", "empty", "file"};
}

inline Problem make_test_problem(const Shape& shape, const std::string& routing,
                                 std::uint64_t seed) {
  RoutingSpec spec;
  spec.seed = seed;
  if (routing == "balanced") {
    spec.kind = RoutingKind::balanced;
  } else if (routing == "uniform") {
    spec.kind = RoutingKind::uniform;
  } else if (routing == "zipf") {
    spec.kind = RoutingKind::zipf;
    spec.alpha = 1.2;
  } else if (routing == "hot") {
    spec.kind = RoutingKind::hot;
    spec.hot_experts = 1;
    spec.hot_share = 1.0 / shape.topk;
  } else if (routing == "empty") {  // all hits on K experts, the others stay empty
    spec.kind = RoutingKind::hot;
    spec.hot_experts = shape.topk;
    spec.hot_share = 1.0;
  } else {
    spec.kind = RoutingKind::file;
    spec.path = write_skewed_npy(shape, seed);
  }
  return make_problem(shape, spec);
}

// A config in a failure's words.
inline std::string named(const Config& config) {
  const std::string differs = describe(config);
  return differs.empty() ? "the default config" : "the config \"" + differs + "\"";
}

// All ranks' outputs, each [T, H] bf16.
struct Outputs {
  int hidden = 0;
  std::vector<std::vector<kernels::Bf16>> by_rank;
};

inline Outputs read_outputs(LayerRunner& runner) {
  Outputs outputs;
  outputs.hidden = runner.memory().shape().hidden;
  for (int r = 0; r < runner.memory().ranks(); ++r) {
    outputs.by_rank.push_back(runner.memory().read_output(r));
  }
  return outputs;
}

// "" if they are bitwise equal, else the first element that is not.
inline std::string first_difference(const Outputs& expected, const Outputs& found) {
  for (std::size_t r = 0; r < expected.by_rank.size(); ++r) {
    const auto& a = expected.by_rank[r];
    const auto& b = found.by_rank.at(r);
    const auto [at, other] = std::mismatch(a.begin(), a.end(), b.begin(), b.end());
    if (at != a.end()) {
      const auto index = static_cast<int>(at - a.begin());
      char text[128];
      std::snprintf(text, sizeof(text), "rank %d token %d column %d: 0x%04x and 0x%04x",
                    static_cast<int>(r), index / expected.hidden, index % expected.hidden,
                    static_cast<unsigned>(*at), static_cast<unsigned>(*other));
      return text;
    }
  }
  return "";
}

// "" if the last iteration's outputs are right, else how far off they are, and where.
inline std::string what_is_wrong(LayerRunner& runner) {
  const OutputError error = runner.output_error();
  if (error.relative <= kMaxRelativeError && error.worst_row <= kMaxRowError) {
    return "";
  }
  char text[160];
  std::snprintf(text, sizeof(text), "relative error %.2e; worst row %.2e, rank %d token %d",
                error.relative, error.worst_row, error.worst_rank, error.worst_token);
  return text;
}

// Poisoned buffers, one iteration, its outputs against the reference: "" or what is wrong.
inline std::string checked_run(LayerRunner& runner, const Config& config) {
  runner.configure(config);
  runner.memory().poison();
  runner.run_once();
  return what_is_wrong(runner);
}

}  // namespace fusescope::engine::cuda::test
