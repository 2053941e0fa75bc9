// Outputs are bitwise the same whatever the knobs, because every sum has a fixed order.
#include <functional>

#include "engine/cuda/cuda_test_support.hpp"

namespace fusescope::engine::cuda::test {
namespace {

struct Variation {
  const char* name;
  std::function<void(Config&)> apply;
};

std::vector<Variation> variations() {
  return {
      {"as it is", [](Config&) {}},
      {"dispatch_comm_sms 0", [](Config& c) { c.dispatch_comm_sms = 0; }},
      {"dispatch_comm_sms 1", [](Config& c) { c.dispatch_comm_sms = 1; }},
      {"dispatch_comm_sms 100", [](Config& c) { c.dispatch_comm_sms = 100; }},
      {"combine_comm_sms 0", [](Config& c) { c.combine_comm_sms = 0; }},
      {"combine_comm_sms 90", [](Config& c) { c.combine_comm_sms = 90; }},
      {"tokens_per_block 1", [](Config& c) { c.tokens_per_block = 1; }},
      {"tokens_per_block 24", [](Config& c) { c.tokens_per_block = 24; }},
      {"pull_order by_token", [](Config& c) { c.pull_order = PullOrder::by_token; }},
      {"job_order by_token", [](Config& c) { c.job_order = JobOrder::by_token; }},
      {"slot_order interleave", [](Config& c) { c.slot_order = SlotOrder::interleave_sources; }},
      {"slot_order rotate", [](Config& c) { c.slot_order = SlotOrder::rotate_from_self; }},
      {"block per job",
       [](Config& c) {
         c.combine = Combine::block_per_job;
         c.all_hands = false;
       }},
      {"not all hands", [](Config& c) { c.all_hands = false; }},
      {"watermark_chunks 7", [](Config& c) { c.watermark_chunks = 7; }},
      {"schedule host", [](Config& c) { c.schedule = ScheduleSite::host; }},
      {"no graph", [](Config& c) { c.graph = false; }},
      {"link capped", [](Config& c) { c.link_gbps = 20; }},
      {"late token",
       [](Config& c) {
         c.inject = {InjectPoint::token, 200'000, -1, 3};
       }},
      {"late source rank",
       [](Config& c) {
         c.inject = {InjectPoint::source_rank, 3'000, 1, -1};
       }},
      {"serial", [](Config& c) { c.form = LayerForm::serial; }},
  };
}

void expect_same_outputs(int ranks, const std::vector<Device>& devices, Config base) {
  const Problem problem = make_test_problem(make_shape(ranks, 301, 1024, 16, 4, 256), "zipf", 21);
  LayerRunner runner(problem, devices, {.seed = 8, .deadline_ns = kTestDeadlineNs});
  ASSERT_LE(checked_run(runner, base), kMaxRelativeError);
  const std::uint64_t expected = runner.output_checksum();
  for (const Variation& variation : variations()) {
    Config config = base;
    variation.apply(config);
    runner.configure(config);
    for (int repeat = 0; repeat < 3; ++repeat) {
      runner.memory().poison();
      runner.run_once();
      EXPECT_EQ(runner.output_checksum(), expected) << variation.name << ", run " << repeat;
    }
  }
}

TEST(Invariance, KnobsOnOneDevice) {
  FUSESCOPE_NEED_DEVICES(devices, 1);
  expect_same_outputs(2, devices, Config{});
}

TEST(Invariance, KnobsWithFusedActivation) {
  FUSESCOPE_NEED_DEVICES(devices, 1);
  Config config;
  config.activation = Activation::fused;
  expect_same_outputs(2, devices, config);
}

TEST(Invariance, KnobsOnTwoDevices) {
  FUSESCOPE_NEED_DEVICES(devices, 2);
  expect_same_outputs(2, devices, Config{});
}

TEST(Invariance, KnobsWithFourRanksOnTwoDevices) {
  FUSESCOPE_NEED_DEVICES(devices, 2);
  expect_same_outputs(4, devices, Config{});
}

// One graph, replayed while the routing changes under it; every routing's outputs stay what they were.
void expect_stable_replays(const std::vector<Device>& devices) {
  constexpr int kRoutings = 10;
  constexpr int kIterations = 1000;
  const Shape shape = make_shape(2, 65, 512, 32, 6, 64);
  std::vector<Problem> problems;
  for (int i = 0; i < kRoutings; ++i) {
    const std::vector<std::string> kinds = {"uniform", "zipf", "hot"};
    problems.push_back(make_test_problem(shape, kinds[static_cast<std::size_t>(i) % kinds.size()],
                                         100 + static_cast<std::uint64_t>(i)));
  }
  LayerRunner runner(problems.front(), devices, {.seed = 4, .deadline_ns = kTestDeadlineNs});
  runner.configure(Config{});
  std::vector<std::uint64_t> expected;
  for (const Problem& problem : problems) {
    runner.set_routing(problem.routing);
    runner.memory().poison();
    runner.run_once();
    ASSERT_LE(runner.relative_error(), kMaxRelativeError);
    expected.push_back(runner.output_checksum());
  }
  for (int i = 0; i < kIterations; ++i) {
    const auto which = static_cast<std::size_t>(i * 7 % kRoutings);
    runner.set_routing(problems[which].routing);
    runner.run_once();
    ASSERT_EQ(runner.output_checksum(), expected[which]) << "iteration " << i;
  }
}

TEST(Invariance, GraphReplayWithChangingRoutingOnOneDevice) {
  FUSESCOPE_NEED_DEVICES(devices, 1);
  expect_stable_replays(devices);
}

TEST(Invariance, GraphReplayWithChangingRoutingOnTwoDevices) {
  FUSESCOPE_NEED_DEVICES(devices, 2);
  expect_stable_replays(devices);
}

}  // namespace
}  // namespace fusescope::engine::cuda::test
