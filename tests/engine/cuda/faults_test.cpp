// A fault ends in a diagnosis within the deadline, and the next run in the same process is right.
#include <chrono>

#include "base/error.hpp"
#include "engine/cuda/cuda_test_support.hpp"

namespace fusescope::engine::cuda::test {
namespace {

constexpr std::uint64_t kDeadlineNs = 100'000'000;
// Above the deadline: launches, copies and the reset afterwards.
constexpr double kSlackSeconds = 5;

struct Case {
  Faults faults;
  std::vector<std::string> said;  // what the diagnosis must name
};

void expect_diagnosis(const std::vector<Device>& devices, const Case& fault, const Config& config) {
  const Problem problem = make_test_problem(make_shape(2, 129, 512, 8, 2, 128), "uniform", 2);
  LayerRunner runner(problem, devices, {.seed = 6, .deadline_ns = kDeadlineNs});
  runner.configure(config);
  runner.run_once();

  runner.configure(config, fault.faults);
  const auto begin = std::chrono::steady_clock::now();
  try {
    runner.run_once();
    ADD_FAILURE() << "the fault went unnoticed";
  } catch (const CheckFailure& failure) {
    const std::string said = failure.what();
    for (const std::string& part : fault.said) {
      EXPECT_NE(said.find(part), std::string::npos) << "\"" << part << "\" is not in: " << said;
    }
  }
  const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - begin;
  EXPECT_LT(spent.count(), 1e-9 * static_cast<double>(kDeadlineNs) + kSlackSeconds);

  EXPECT_LE(checked_run(runner, config), kMaxRelativeError) << "after the fault";
}

Config per_job() {
  Config config;
  config.combine = Combine::block_per_job;
  config.all_hands = false;
  return config;
}

const Case kLostArrival{{.lost_arrival = 5},
                        {"rank ", " block ", "row block ", "expected 128", "seen 127"}};
const Case kLostPush{{.lost_push = 7}, {"rank ", " block ", "watermark of sending rank"}};
const Case kDeadRank{{.dead_rank = 1}, {"rank 0 block ", "rank 1"}};

TEST(Faults, LostArrivalOnOneDevice) {
  FUSESCOPE_NEED_DEVICES(devices, 1);
  expect_diagnosis(devices, kLostArrival, Config{});
}

TEST(Faults, LostPushOnOneDevice) {
  FUSESCOPE_NEED_DEVICES(devices, 1);
  expect_diagnosis(devices, kLostPush, Config{});
}

TEST(Faults, LostPushWithBlockPerJob) {
  FUSESCOPE_NEED_DEVICES(devices, 1);
  expect_diagnosis(devices, kLostPush, per_job());
}

TEST(Faults, DeadRankOnOneDevice) {
  FUSESCOPE_NEED_DEVICES(devices, 1);
  expect_diagnosis(devices, kDeadRank, Config{});
}

TEST(Faults, LostArrivalOnTwoDevices) {
  FUSESCOPE_NEED_DEVICES(devices, 2);
  expect_diagnosis(devices, kLostArrival, Config{});
}

TEST(Faults, LostPushOnTwoDevices) {
  FUSESCOPE_NEED_DEVICES(devices, 2);
  expect_diagnosis(devices, kLostPush, Config{});
}

TEST(Faults, DeadRankOnTwoDevices) {
  FUSESCOPE_NEED_DEVICES(devices, 2);
  expect_diagnosis(devices, kDeadRank, Config{});
}

}  // namespace
}  // namespace fusescope::engine::cuda::test
