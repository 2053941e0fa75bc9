// A thousand iterations with nothing of the host between them, each on another routing and other
// inputs: what one iteration leaves in planes, counters and flags must never show in the next.
#include <array>

#include "engine/cuda/cuda_test_support.hpp"
#include "engine/cuda/staged_runs.hpp"

namespace fusescope::engine::cuda::test {
namespace {

constexpr int kFeeds = 9;  // the kinds of routing below go round three times

std::vector<Feed> make_feeds(const Shape& shape) {
  constexpr std::array kinds = {"uniform", "zipf", "empty"};
  std::vector<Feed> feeds;
  for (std::size_t i = 0; i < kFeeds; ++i) {
    const std::uint64_t seed = 100 + i;
    feeds.push_back({make_test_problem(shape, kinds[i % kinds.size()], seed).routing, seed});
  }
  return feeds;
}

Outputs kept(const StagedRuns& staged, const Shape& shape, int iteration) {
  Outputs outputs{shape.hidden, {}};
  for (int r = 0; r < shape.ranks; ++r) {
    outputs.by_rank.push_back(staged.read_output(r, iteration));
  }
  return outputs;
}

class BackToBack {
 public:
  BackToBack(const Shape& shape, const std::vector<Device>& devices)
      : shape_(shape),
        feeds_(make_feeds(shape)),
        runner_(make_test_problem(shape, "uniform", 1), devices,
                {.seed = 4, .deadline_ns = kTestDeadlineNs}) {}

  // Each feed alone, with a host that waits, against the reference: what the others must equal.
  void prepare(const Config& base) {
    base_ = base;
    for (const Feed& feed : feeds_) {
      runner_.set_routing(feed.routing);
      runner_.set_input(feed.input_seed);
      ASSERT_EQ(checked_run(runner_, base), "");
      expected_.push_back(read_outputs(runner_));
    }
    // Feeds that gave the same outputs could not tell a stale buffer from a fresh one.
    for (std::size_t i = 1; i < expected_.size(); ++i) {
      ASSERT_NE(first_difference(expected_[i - 1], expected_[i]), "");
    }
  }

  void expect_right(const Config& config, int iterations) {
    SCOPED_TRACE(named(config) + " back to back, against " + named(base_) + " one by one");
    runner_.configure(config);
    runner_.run_once();  // everything is loaded before nothing waits for the host any more
    const StagedRuns staged(runner_.memory(), feeds_, iterations);
    runner_.memory().poison();
    runner_.run_back_to_back(staged);
    int wrong = 0;
    for (int i = 0; i < iterations && wrong < 5; ++i) {
      const std::string difference = first_difference(
          expected_[static_cast<std::size_t>(i) % feeds_.size()], kept(staged, shape_, i));
      EXPECT_EQ(difference, "") << "iteration " << i;
      wrong += !difference.empty();
    }
  }

 private:
  Shape shape_;
  Config base_;
  std::vector<Feed> feeds_;
  LayerRunner runner_;
  std::vector<Outputs> expected_;
};

std::vector<Config> other_configs() {
  std::vector<Config> all(4);
  all[0].dispatch_comm_sms = 0;
  all[0].combine_comm_sms = 0;
  all[0].watermark_chunks = 7;
  all[1].combine = Combine::block_per_job;
  all[1].all_hands = false;
  all[2].graph = false;
  all[2].slot_order = SlotOrder::rotate_from_self;
  all[3].form = LayerForm::serial;
  return all;
}

void run(int ranks, const std::vector<Device>& devices) {
  BackToBack runs(make_shape(ranks, 65, 512, 32, 6, 64), devices);
  ASSERT_NO_FATAL_FAILURE(runs.prepare(Config{}));
  runs.expect_right(Config{}, 1000);
  for (const Config& config : other_configs()) {
    runs.expect_right(config, 100);
  }
}

// Kernels that begin while the one before still runs, in every iteration.
void run_programmatic(int ranks, const std::vector<Device>& devices) {
  Config config;
  config.activation = Activation::fused;
  config.schedule = ScheduleSite::fused;
  BackToBack runs(make_shape(ranks, 65, 512, 32, 6, 64), devices);
  ASSERT_NO_FATAL_FAILURE(runs.prepare(config));
  config.launch = LaunchOrder::programmatic;
  runs.expect_right(config, 1000);
  config.dispatch_comm_sms = 0;
  config.combine_comm_sms = 0;
  config.watermark_chunks = 7;
  config.tile_counter = TileCounter::both;
  runs.expect_right(config, 1000);
  config.dispatch = Dispatch::push;
  runs.expect_right(as_built(config, devices), 1000);
}

TEST(BackToBackIterations, OneDevice) {
  FUSESCOPE_NEED_DEVICES(devices, 1);
  run(2, devices);
}

TEST(BackToBackIterations, ProgrammaticOneDevice) {
  FUSESCOPE_NEED_DEVICES(devices, 1);
  run_programmatic(2, devices);
}

TEST(BackToBackIterations, ProgrammaticTwoDevices) {
  FUSESCOPE_NEED_DEVICES(devices, 2);
  run_programmatic(2, devices);
}

TEST(BackToBackIterations, OneRank) {
  FUSESCOPE_NEED_DEVICES(devices, 1);
  run(1, devices);
}

TEST(BackToBackIterations, TwoDevices) {
  FUSESCOPE_NEED_DEVICES(devices, 2);
  run(2, devices);
}

TEST(BackToBackIterations, FourRanksOnTwoDevices) {
  FUSESCOPE_NEED_DEVICES(devices, 2);
  run(4, devices);
}

TEST(BackToBackIterations, FourDevices) {
  FUSESCOPE_NEED_DEVICES(devices, 4);
  run(4, devices);
}

TEST(BackToBackIterations, ProgrammaticFourDevices) {
  FUSESCOPE_NEED_DEVICES(devices, 4);
  run_programmatic(4, devices);
}

// One graph, replayed while the host changes the routing under it, one by one.
TEST(BackToBackIterations, RoutingThatTheHostChanges) {
  FUSESCOPE_NEED_DEVICES(devices, 1);
  const Shape shape = make_shape(2, 65, 512, 32, 6, 64);
  const std::vector<Feed> feeds = make_feeds(shape);
  LayerRunner runner(make_test_problem(shape, "uniform", 1), devices,
                     {.seed = 4, .deadline_ns = kTestDeadlineNs});
  runner.configure(Config{});
  std::vector<Outputs> expected;
  for (int i = 0; i < 100; ++i) {
    const auto which = static_cast<std::size_t>(i) % feeds.size();
    runner.set_routing(feeds[which].routing);
    if (which == expected.size()) {
      runner.memory().poison();
      runner.run_once();
      ASSERT_EQ(what_is_wrong(runner), "");
      expected.push_back(read_outputs(runner));
    } else {
      runner.run_once();
      ASSERT_EQ(first_difference(expected[which], read_outputs(runner)), "") << "iteration " << i;
    }
  }
}

}  // namespace
}  // namespace fusescope::engine::cuda::test
