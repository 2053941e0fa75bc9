// The serial layer through NCCL: right outputs, the same bits each time, and an end to waiting for a rank
// that does not come.
#include "engine/cuda/collectives.hpp"

#include <unistd.h>

#include "base/error.hpp"
#include "engine/cuda/cuda_test_support.hpp"
#include "engine/cuda/nccl_choice.hpp"

namespace fusescope::engine::cuda::test {
namespace {

#define FUSESCOPE_NEED_NCCL()                                              \
  if (const NcclFound nccl_found = find_nccl(); nccl_found.file.empty()) { \
    GTEST_SKIP() << nccl_found.why_not;                                    \
  }

Config serial_config(bool graph) {
  Config config;
  config.form = LayerForm::serial;
  config.graph = graph;
  return config;
}

// One rank on each device.
void expect_right_and_repeated(const std::vector<Device>& devices) {
  std::vector<int> of_rank;
  for (const Device& device : devices) {
    of_rank.push_back(device.index);
  }
  const int ranks = static_cast<int>(devices.size());
  const Problem problem = make_test_problem(make_shape(ranks, 129, 1024, 16, 4, 256), "zipf", 3);
  NcclCollectives nccl(of_rank);
  LayerRunner runner(problem, devices, {.seed = 5, .deadline_ns = kTestDeadlineNs});
  for (const bool graph : {true, false}) {
    runner.use_nccl(&nccl);
    EXPECT_EQ(checked_run(runner, serial_config(graph)), "");
    const std::uint64_t first = runner.output_checksum();
    for (int i = 0; i < 50; ++i) {
      const Sample sample = runner.run_once();
      EXPECT_GT(sample.sm_clock_mhz, 100);
      ASSERT_EQ(runner.output_checksum(), first) << "iteration " << i << " graph " << graph;
    }
    runner.use_nccl(nullptr);
    EXPECT_EQ(checked_run(runner, serial_config(graph)), "");
  }
}

TEST(TwoDevicesNccl, OutputsAreRightAndRepeat) {
  FUSESCOPE_NEED_DEVICES(devices, 2);
  FUSESCOPE_NEED_NCCL();
  expect_right_and_repeated(devices);
}

TEST(FourDevicesNccl, OutputsAreRightAndRepeat) {
  FUSESCOPE_NEED_DEVICES(devices, 4);
  FUSESCOPE_NEED_NCCL();
  expect_right_and_repeated(devices);
}

TEST(TwoDevicesNccl, ServesEveryProblemOfAnEngine) {
  FUSESCOPE_NEED_DEVICES(devices, 2);
  FUSESCOPE_NEED_NCCL();
  NcclCollectives nccl({devices[0].index, devices[1].index});
  for (const int tokens : {1, 65, 512}) {
    const Problem problem = make_test_problem(make_shape(2, tokens, 512, 8, 2, 128), "uniform", 3);
    LayerRunner runner(problem, devices, {.seed = 5, .deadline_ns = kTestDeadlineNs});
    runner.use_nccl(&nccl);
    EXPECT_EQ(checked_run(runner, serial_config(true)), "") << tokens;
  }
}

TEST(TwoDevicesNccl, ARankThatDoesNotComeEndsTheRun) {
  FUSESCOPE_NEED_DEVICES(devices, 2);
  FUSESCOPE_NEED_NCCL();
  ::alarm(60);  // a library that does not abort must not hold the machine
  const Problem problem = make_test_problem(make_shape(2, 65, 512, 8, 2, 128), "uniform", 3);
  NcclChoice choice;
  const std::vector<int> of_rank = {devices[0].index, devices[1].index};
  {
    LayerRunner runner(problem, devices, {.seed = 5, .deadline_ns = 200'000'000});
    runner.use_nccl(choice.choose(serial_config(true), of_rank).nccl);
    runner.configure(serial_config(true), {.dead_rank = 1});
    try {
      runner.run_once();
      ADD_FAILURE() << "an iteration without rank 1 ended";
    } catch (const CheckFailure& failure) {
      EXPECT_EQ(failure.kind(), CheckFailure::Kind::aborted);
      EXPECT_NE(std::string(failure.what()).find("NCCL"), std::string::npos) << failure.what();
    }
  }
  EXPECT_TRUE(choice.aborted());
  choice.drop();
  LayerRunner runner(problem, devices, {.seed = 5, .deadline_ns = kTestDeadlineNs});
  runner.use_nccl(choice.choose(serial_config(true), of_rank).nccl);
  EXPECT_EQ(checked_run(runner, serial_config(true)), "");
  ::alarm(0);
}

TEST(NcclChoice, CoLocatedRanksGetPeerCopies) {
  NcclChoice choice;
  Config config = serial_config(true);
  EXPECT_TRUE(choice.choose(config, {0, 0}).said.starts_with("peer copies: ")) << "auto";
  EXPECT_EQ(choice.choose(config, {0}).said, "") << "one rank gathers nothing";
  config.collectives = Collectives::nccl;
  EXPECT_THROW(choice.choose(config, {0, 0, 1, 1}), InputError);
  config.collectives = Collectives::peer_copies;
  EXPECT_EQ(choice.choose(config, {0, 1}).said, "peer copies");
  config.form = LayerForm::fused;
  EXPECT_EQ(choice.choose(config, {0, 1}).said, "");
}

}  // namespace
}  // namespace fusescope::engine::cuda::test
