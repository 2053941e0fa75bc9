// Injected delays and the link's cap lengthen the wall by what they must at least, whatever the
// machine does: a bound that follows from the counts of operations alone. And they change no output.
#include <map>

#include "engine/cuda/cuda_test_support.hpp"

namespace fusescope::engine::cuda::test {
namespace {

// Delays are counted on the device's nanosecond clock and walls by events: two clocks, nearly one.
constexpr double kClocksAgree = 0.98;

constexpr int kTokensPerRank = 65;
constexpr int kSlots = 8;      // that fetch tokens: one communication block
constexpr int kJobGroups = 3;  // that run jobs: one block's warpgroups

constexpr int most_of_one(int operations, int workers) {
  return (operations + workers - 1) / workers;
}

struct Injection {
  std::string name;
  Inject inject;
  int at_least;  // delays that follow one another on some path that the iteration waits for
};

std::vector<Injection> injections(const Shape& shape) {
  constexpr int kLong = 5'000'000;  // [ns]
  constexpr int kEach = 300'000;
  const int tokens = shape.tokens();
  return {
      {"pull", {InjectPoint::pull, kEach, -1, -1}, most_of_one(tokens, kSlots)},
      {"scatter", {InjectPoint::scatter, kEach, -1, -1}, most_of_one(tokens, kSlots)},
      {"source_rank",
       {InjectPoint::source_rank, kEach, shape.ranks - 1, -1},
       most_of_one(kTokensPerRank, kSlots)},
      {"token", {InjectPoint::token, kLong, -1, 3}, 1},
      {"expert", {InjectPoint::expert, kLong, -1, -1, 3}, 1},
      {"job", {InjectPoint::job, kEach, -1, -1}, most_of_one(tokens, kJobGroups)},
      {"push", {InjectPoint::push, kEach, -1, -1}, most_of_one(tokens, kJobGroups)},
      {"watermark", {InjectPoint::watermark, kLong, -1, -1}, 1},
  };
}

void expect_injected(int ranks, const std::vector<Device>& devices) {
  const Problem problem =
      make_test_problem(make_shape(ranks, kTokensPerRank, 512, 8, 2, 128), "uniform", 3);
  LayerRunner runner(problem, devices, {.seed = 2, .deadline_ns = kTestDeadlineNs});
  Config base;
  base.dispatch_comm_sms = 1;
  base.tokens_per_block = kSlots;
  base.combine_comm_sms = 1;
  base.all_hands = false;
  ASSERT_EQ(checked_run(runner, base), "");
  const Outputs right = read_outputs(runner);
  for (const Injection& injection : injections(problem.shape)) {
    SCOPED_TRACE(injection.name);
    Config config = base;
    config.inject = injection.inject;
    runner.configure(config);
    const Sample sample = runner.run_once();
    EXPECT_GE(sample.wall_us, kClocksAgree * 1e-3 * injection.inject.delay_ns * injection.at_least);
    EXPECT_EQ(first_difference(right, read_outputs(runner)), "");
  }
}

TEST(Inject, LengthensTheWallOnOneDevice) {
  FUSESCOPE_NEED_DEVICES(devices, 1);
  expect_injected(2, devices);
}

TEST(Inject, LengthensTheWallOnTwoDevices) {
  FUSESCOPE_NEED_DEVICES(devices, 2);
  expect_injected(2, devices);
}

std::vector<Config> capped_forms() {
  std::vector<Config> forms(5);
  forms[1].dispatch_comm_sms = 0;
  forms[2].combine = Combine::block_per_job;
  forms[2].all_hands = false;
  forms[3].form = LayerForm::serial;
  forms[4].dispatch_comm_sms = 0;
  forms[4].dispatch_head = 0;
  forms[4].tile = TileShape::m160n256;
  forms[4].activation = Activation::fused;
  return forms;
}

// What comes in from the peers and what goes out to them each passes the cap, one after the other:
// the last push follows the last pull.
void expect_capped(int ranks, const std::vector<Device>& devices) {
  const Shape shape = make_shape(ranks, kTokensPerRank, 512, 8, 2, 128);
  const Problem problem = make_test_problem(shape, "uniform", 3);
  LayerRunner runner(problem, devices, {.seed = 2, .deadline_ns = kTestDeadlineNs});
  std::map<Activation, Outputs> right;
  for (const Activation activation : {Activation::separate, Activation::fused}) {
    Config config;
    config.activation = activation;
    ASSERT_EQ(checked_run(runner, config), "");
    right[activation] = read_outputs(runner);
  }
  for (Config config : capped_forms()) {
    config.link_gbps = 0.02;  // [bytes / ns]
    SCOPED_TRACE(named(config));
    runner.configure(config);
    const Sample sample = runner.run_once();
    const double bytes = 2.0 * (ranks - 1) * kTokensPerRank * shape.hidden;
    EXPECT_GE(sample.wall_us, kClocksAgree * 1e-3 * 2 * bytes / config.link_gbps);
    EXPECT_EQ(first_difference(right.at(config.activation), read_outputs(runner)), "");
  }
}

TEST(Inject, CapIsKeptOnOneDevice) {
  FUSESCOPE_NEED_DEVICES(devices, 1);
  expect_capped(2, devices);
  expect_capped(3, devices);
}

TEST(Inject, CapIsKeptOnTwoDevices) {
  FUSESCOPE_NEED_DEVICES(devices, 2);
  expect_capped(2, devices);
}

TEST(Inject, CapIsKeptOnFourDevices) {
  FUSESCOPE_NEED_DEVICES(devices, 4);
  expect_capped(4, devices);
}

}  // namespace
}  // namespace fusescope::engine::cuda::test
