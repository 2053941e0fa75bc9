// The simulator as an Engine: what it says of itself, determinism, samples, and what it refuses.
#include <gtest/gtest.h>

#include <limits>
#include <thread>

#include "base/error.hpp"
#include "engine/sim/sim_engine.hpp"
#include "sim_run.hpp"

namespace fusescope::engine::sim {
namespace {

RunRequest request_of(const Problem& problem, bool timeline) {
  RunRequest request;
  request.problem = &problem;
  request.timeline = timeline;
  request.command = "fusescope run";
  return request;
}

TEST(SimEngine, SaysThatItIsSimulated) {
  SimEngine engine(load_profile("h200-nvlink"));
  const Problem problem = problem_of(odd_shape(), "uniform");
  const RunResult result = engine.run(request_of(problem, true));
  EXPECT_EQ(result.provenance, timeline::Provenance::simulated);
  EXPECT_EQ(result.source, "simulated on h200-nvlink");
  EXPECT_EQ(engine.name(), "sim");
  EXPECT_EQ(engine.device().sms, 132);
  EXPECT_NE(engine.identity(), SimEngine(load_profile(kSeedProfile)).identity());
  const timeline::Meta& meta = result.timeline->meta;
  EXPECT_EQ(meta.provenance, timeline::Provenance::simulated);
  EXPECT_EQ(meta.device, "h200-nvlink");
  EXPECT_EQ(meta.sms, 132);
  EXPECT_EQ(meta.command, "fusescope run");
  EXPECT_EQ(meta.problem, describe(problem));
}

TEST(SimEngine, OneSampleWithoutNoiseAndItIsTheTimelinesWall) {
  SimEngine engine(load_profile(kSeedProfile));
  const Problem problem = problem_of(odd_shape(), "uniform");
  const RunResult with = engine.run(request_of(problem, true));
  const RunResult without = engine.run(request_of(problem, false));
  ASSERT_EQ(with.samples.size(), 1u);
  EXPECT_EQ(with.samples.front().wall_us, without.samples.front().wall_us);
  EXPECT_DOUBLE_EQ(with.samples.front().wall_us,
                   static_cast<double>(with.timeline->wall_ns()) / 1e3);
  EXPECT_EQ(with.samples.front().rank_wall_us.size(), 3u);
  EXPECT_FALSE(without.timeline.has_value());
}

TEST(SimEngine, NoiseIsDrawnFromTheSeed) {
  Profile profile = load_profile(kSeedProfile);
  profile.jitter = 0.03;
  SimEngine engine(profile);
  const Problem problem = problem_of(odd_shape(), "uniform");
  RunRequest request = request_of(problem, false);
  request.min_samples = 12;
  request.target_rel_ci = 1;
  request.max_seconds = std::numeric_limits<double>::infinity();  // the machine's
  const auto walls = [&] {
    std::vector<double> result;
    for (const Sample& sample : engine.run(request).samples) {
      result.push_back(sample.wall_us);
    }
    return result;
  };
  const std::vector<double> first = walls();
  EXPECT_EQ(first.size(), 12u);
  EXPECT_NE(first[0], first[1]);
  EXPECT_EQ(walls(), first);
  request.seed = 2;
  EXPECT_NE(walls(), first);
}

TEST(SimEngine, ConcurrentRunsGiveIdenticalTimelines) {
  SimEngine engine(load_profile(kSeedProfile));
  const Problem problem = problem_of("seed-tp4", "uniform");
  const timeline::Timeline expected = *engine.run(request_of(problem, true)).timeline;
  std::vector<timeline::Timeline> found(4);
  std::vector<std::thread> threads;
  for (timeline::Timeline& timeline : found) {
    threads.emplace_back(
        [&] { timeline = std::move(*engine.run(request_of(problem, true)).timeline); });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  for (const timeline::Timeline& timeline : found) {
    EXPECT_TRUE(timeline == expected);
  }
}

TEST(SimEngine, RefusesAnImpossibleSplit) {
  SimEngine engine(load_profile(kSeedProfile));
  const Problem problem = problem_of(odd_shape(), "uniform");
  RunRequest request = request_of(problem, false);
  request.config.dispatch_comm_sms = 110;
  EXPECT_THROW(engine.run(request), InputError);
}

TEST(MakeEngine, KnowsItsEngines) {
  EngineOptions options;
  options.engine = "sim";
  EXPECT_EQ(make_engine(options)->device().name, kSeedProfile);
  options.profile = "h200-nvlink";
  EXPECT_EQ(make_engine(options)->device().name, "h200-nvlink");
  options.engine = "auto";
  EXPECT_EQ(make_engine(options)->name(), "sim") << "a profile asks for the simulator";
  options.engine = "simulator";
  EXPECT_THROW(make_engine(options), InputError);
}

TEST(MakeEngine, DoesNotSimulateDevicesThatAreAskedForByNumber) {
  EngineOptions options;
  options.devices = {1'000'000};
  EXPECT_THROW(make_engine(options), InputError);
}

}  // namespace
}  // namespace fusescope::engine::sim
