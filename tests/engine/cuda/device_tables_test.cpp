// The tables that an iteration builds on the device equal the golden ones, element by element.
#include <algorithm>
#include <array>

#include "base/random.hpp"
#include "engine/cuda/cuda_test_support.hpp"
#include "layer/table_checks.hpp"

namespace fusescope::engine::cuda::test {
namespace {

void expect_golden(LayerRunner& runner, const Problem& problem, SlotOrder order) {
  for (int r = 0; r < problem.shape.ranks; ++r) {
    const ScheduleTables found = runner.memory().read_tables(r);
    const ScheduleTables golden = build_tables_golden(problem.shape, problem.routing, order, r);
    const auto difference = compare_tables(golden, found);
    EXPECT_FALSE(difference.has_value()) << "rank " << r << ": " << to_string(*difference) << "\n"
                                         << describe(problem);
    EXPECT_FALSE(check_tables(found, problem.shape, problem.routing).has_value());
  }
}

TEST(DeviceTables, EqualGolden) {
  FUSESCOPE_NEED_DEVICES(devices, 1);
  constexpr std::array kSites = {ScheduleSite::fused, ScheduleSite::device, ScheduleSite::fused,
                                 ScheduleSite::host};
  int number = 0;
  for (const int experts : {4, 8, 60, 64, 256}) {
    for (const std::string& routing : matrix_routings()) {
      for (const SlotOrder order :
           {SlotOrder::by_token, SlotOrder::interleave_sources, SlotOrder::rotate_from_self}) {
        ++number;
        constexpr std::array kTopk = {1, 2, 3, 4, 6, 8, 10, 40};
        const int topk = std::min(experts, kTopk[static_cast<std::size_t>(number) % kTopk.size()]);
        const Shape shape = make_shape(2, 101 + number, 64, experts, topk, 64);
        const Problem problem =
            make_test_problem(shape, routing, static_cast<std::uint64_t>(number));
        LayerRunner runner(problem, devices, {.seed = 1, .deadline_ns = kTestDeadlineNs});
        Config config;
        config.slot_order = order;
        config.schedule = kSites[static_cast<std::size_t>(number) % kSites.size()];
        runner.configure(config);
        runner.run_once();
        expect_golden(runner, problem, order);
      }
    }
  }
}

Problem small_of(Shape shape, std::uint64_t seed) {
  shape.hidden = 64;  // the tables know nothing of it
  shape.intermediate = 64;
  return make_test_problem(shape, "zipf", seed);
}

void expect_golden_from_prologue(const Problem& problem, const std::vector<Device>& devices) {
  LayerRunner runner(problem, devices, {.seed = 1, .deadline_ns = kTestDeadlineNs});
  for (const SlotOrder order :
       {SlotOrder::by_token, SlotOrder::interleave_sources, SlotOrder::rotate_from_self}) {
    Config config;
    config.slot_order = order;
    config.schedule = ScheduleSite::fused;
    ASSERT_EQ(why_illegal_on_device(problem, config, limits_of(devices.front())), "");
    runner.configure(config);
    runner.memory().poison();
    for (int again = 0; again < 3; ++again) {
      runner.run_once();
      expect_golden(runner, problem, order);
    }
  }
}

TEST(DeviceTables, PrologueEqualsGoldenOnEveryShape) {
  FUSESCOPE_NEED_DEVICES(devices, 1);
  for (const Shape& shape : list_shapes()) {
    SCOPED_TRACE(shape.name);
    expect_golden_from_prologue(small_of(shape, 7), devices);
  }
}

// Few tokens, more than a block's shared memory holds, more experts than a warp has lanes.
TEST(DeviceTables, PrologueEqualsGoldenAtOddSizes) {
  FUSESCOPE_NEED_DEVICES(devices, 1);
  Random random(5, 0);
  const auto between = [&](int least, int most) {
    return least + static_cast<int>(random.below(static_cast<std::uint64_t>(most - least + 1)));
  };
  std::vector<Shape> shapes = {
      make_shape(1, 1, 64, 1, 1, 64),      make_shape(2, 3, 64, 5, 5, 64),
      make_shape(1, 255, 64, 1024, 1, 64), make_shape(4, 16384, 64, 512, 16, 64),
      make_shape(3, 4097, 64, 33, 33, 64),
  };
  for (int i = 0; i < 12; ++i) {
    const int experts = between(1, 600);
    shapes.push_back(make_shape(between(1, 4), between(1, 1500), 64, experts,
                                between(1, std::min(experts, 64)), 64));
  }
  for (std::size_t i = 0; i < shapes.size(); ++i) {
    const Problem problem =
        make_test_problem(shapes[i], matrix_routings().at(i % matrix_routings().size()), i);
    SCOPED_TRACE(describe(problem));
    expect_golden_from_prologue(problem, devices);
  }
}

// Ids as a wait that was given up may leave them: anything at all, twice within a token too. What is no
// expert counts as the last; the kernels that follow run on such tables without leaving their buffers.
TEST(DeviceTables, WildIdsCountAsTheLastExpert) {
  FUSESCOPE_NEED_DEVICES(devices, 1);
  const Shape shape = make_shape(2, 333, 64, 12, 4, 64);
  Problem problem = make_test_problem(shape, "uniform", 3);
  LayerRunner runner(problem, devices, {.seed = 1, .deadline_ns = kTestDeadlineNs});
  Random random(6, 0);
  for (std::int32_t& expert : problem.routing.experts) {
    expert = static_cast<std::int32_t>(random.below(3) == 0 ? random.next() : random.below(12));
  }
  runner.memory().set_routing(problem.routing);
  for (std::int32_t& expert : problem.routing.experts) {
    expert = expert < 0 || expert > 11 ? 11 : expert;
  }
  for (const ScheduleSite site : {ScheduleSite::fused, ScheduleSite::device}) {
    Config config;
    config.schedule = site;
    runner.configure(config);
    runner.run_once();
    for (int r = 0; r < shape.ranks; ++r) {
      const auto difference =
          compare_tables(build_tables_golden(shape, problem.routing, config.slot_order, r),
                         runner.memory().read_tables(r));
      EXPECT_FALSE(difference.has_value()) << "rank " << r << ": " << to_string(*difference);
    }
  }
}

// Needs no GPU.
TEST(DeviceTables, WhatThePrologueCannotHoldIsRefused) {
  const Device h200{0, "NVIDIA H200", 132, 232448, ""};
  Config config;
  config.schedule = ScheduleSite::fused;
  for (const auto& [shape, said] :
       {std::pair{make_shape(1, 2, 64, 1025, 1, 64), "at most 1024 experts"},
        std::pair{make_shape(2, 500'000, 64, 64, 4, 64), "bytes of a block's shared memory"}}) {
    Problem problem;
    problem.shape = shape;
    const std::string why = why_illegal_on_device(problem, config, limits_of(h200));
    EXPECT_NE(why.find(said), std::string::npos) << why;
    EXPECT_NE(why.find("set schedule to device"), std::string::npos) << why;
    Config other = config;
    other.schedule = ScheduleSite::device;
    EXPECT_EQ(why_illegal_on_device(problem, other, limits_of(h200)), "");
  }
}

}  // namespace
}  // namespace fusescope::engine::cuda::test
