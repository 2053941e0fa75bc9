#include "engine/cuda/rung_turns.hpp"

#include <utility>

#include "base/error.hpp"

namespace fusescope::engine::cuda {
namespace {

constexpr int kSamplesPerTurn = 4;

// The first iteration after a change of config runs on caches of another study, and is left out.
std::vector<double> take_turn(LayerRunner& runner, const Config& config,
                              std::chrono::milliseconds rest) {
  runner.configure(config);
  runner.run_once(rest);
  std::vector<double> walls;
  for (int i = 0; i < kSamplesPerTurn; ++i) {
    walls.push_back(runner.run_once(rest).wall_us);
  }
  return walls;
}

}  // namespace

std::vector<RungSamples> take_rung_turns(LayerRunner& runner, const Config& config, int rounds,
                                         std::chrono::milliseconds rest) {
  if (const std::string why = why_no_rungs(config); !why.empty()) {
    throw InputError({"", "rungs", why, "form fused, study full, inject none"});
  }
  const std::uint64_t outputs = runner.output_checksum();
  std::vector<RungSamples> rungs;
  for (const Study study : kRungs) {
    rungs.push_back({study, {}});
  }
  for (int round = 0; round < rounds; ++round) {
    // Every other round backwards: no study always follows the same one.
    for (std::size_t i = 0; i < rungs.size(); ++i) {
      RungSamples& rung = rungs[round % 2 == 0 ? i : rungs.size() - 1 - i];
      Config study = config;
      study.study = rung.study;
      rung.wall_us.push_back(take_turn(runner, study, rest));
    }
  }
  runner.configure(config);
  runner.run_once();
  if (runner.output_checksum() != outputs) {
    throw CheckFailure("outputs changed after the studies ran (" + describe(config) + ")",
                       CheckFailure::Kind::wrong_output);
  }
  return rungs;
}

}  // namespace fusescope::engine::cuda
