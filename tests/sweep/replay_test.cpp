#include "sweep/replay.hpp"

#include <gtest/gtest.h>

#include "sweep/search_space.hpp"
#include "sweep_fixture.hpp"

namespace fusescope::sweep {
namespace {

constexpr int kSamples = 20;
constexpr double kWallSeconds = 1e-3;
constexpr double kRestSeconds = 1e-2;
constexpr double kSetupSeconds = 0.5;

// A log that holds the whole space of `sweep`, every sample after a rest.
LogContents rested_log(const SweepConfig& sweep) {
  LogContents log;
  log.header = test::small_header(sweep);
  const SearchSpace space(sweep, log.header.limits);
  for (const long long index : space.allowed_indices()) {
    Trial trial;
    trial.id = static_cast<int>(log.trials.size());
    trial.config = space.at(index);
    trial.source = "made up by a test";
    trial.wall_us.assign(kSamples, kWallSeconds * 1e6);
    set_medians(trial);
    trial.seconds = kSetupSeconds + kSamples * (kRestSeconds + kWallSeconds);
    log.trials.push_back(trial);
  }
  return log;
}

TEST(Replay, ASearchPaysTheRestOfEverySampleThatItTakes) {
  Json document = test::small_sweep_document();
  document["measure"] = {{"rest_ms", static_cast<int>(kRestSeconds * 1e3)},
                         {"min_samples", kSamples}};
  const SweepConfig sweep = parse_sweep_config(document, "small.json");
  const LogContents log = rested_log(sweep);
  const StoredSamples stored(log, sweep);
  const auto configs = static_cast<double>(stored.configs());
  EXPECT_NEAR(stored.sample_seconds(), configs * kSamples * kWallSeconds, 1e-9);
  EXPECT_NEAR(stored.seconds(),
              configs * (kSetupSeconds + kSamples * (kRestSeconds + kWallSeconds)), 1e-9);
  Search racing;
  racing.kind = SearchKind::racing;
  const ReplayRun run = stored.replay(racing, 1, 0.02, {});
  const double taken = run.samples * stored.sample_seconds() / kWallSeconds;
  EXPECT_LT(taken, run.measurements * kSamples) << "racing takes fewer samples at a visit";
  EXPECT_NEAR(run.time * stored.seconds(),
              run.measurements * kSetupSeconds + taken * (kRestSeconds + kWallSeconds), 1e-6);
}

}  // namespace
}  // namespace fusescope::sweep
