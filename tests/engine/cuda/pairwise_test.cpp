// End to end on a pairwise design over shapes, routings and knobs: every two values of every two of
// them meet in some case. NaN-poisoned buffers, fresh random inputs for each case.
#include "engine/cuda/pairwise.hpp"

#include <array>

#include "engine/cuda/cuda_test_support.hpp"

namespace fusescope::engine::cuda::test {
namespace {

using fusescope::test::kOpen;
using fusescope::test::Pairwise;
using fusescope::test::PairwiseCase;

enum Factor {
  kExperts,
  kTopk,
  kRanks,
  kTokens,
  kRouting,
  kHidden,
  kIntermediate,
  kForm,
  kDispatch,
  kDispatchSms,
  kCombineSms,
  kTokensPerBlock,
  kHead,
  kPullOrder,
  kJobOrder,
  kSlotOrder,
  kChunks,
  kActivation,
  kTile,
  kSchedule,
  kTileCounter,
  kLaunch,
  kGraph,
  kFactors
};

constexpr int kEach = 0;  // a chunk of its own for each token
constexpr std::array kExpertsLevels = {4, 8, 32, 60, 64, 128, 256};
constexpr std::array kTopkLevels = {1, 2, 4, 6, 8, 10, 40};
constexpr std::array kRanksLevels = {1, 2, 3, 4, 8};
constexpr std::array kTokensLevels = {1, 33, 64, 127};
constexpr std::array kHiddenLevels = {512, 520, 1024, 2048, 4096, 7168};
constexpr std::array kIntermediateLevels = {64, 72, 128, 256, 384};
constexpr std::array kDispatchSmsLevels = {0, 1, 16};
constexpr std::array kCombineSmsLevels = {0, 1, 24};
constexpr std::array kTokensPerBlockLevels = {1, 5, 12};
constexpr std::array kHeadLevels = {100, 50, 0};
constexpr std::array kChunksLevels = {1, 7, 64, kEach};
enum Form { kAllHands, kFewHands, kPerJob, kSerial, kForms };

template <std::size_t N>
constexpr int count(const std::array<int, N>&) {
  return static_cast<int>(N);
}

std::vector<int> levels() {
  std::vector<int> each(kFactors, 2);
  each[kExperts] = count(kExpertsLevels);
  each[kTopk] = count(kTopkLevels);
  each[kRanks] = count(kRanksLevels);
  each[kTokens] = count(kTokensLevels);
  each[kRouting] = static_cast<int>(matrix_routings().size());
  each[kHidden] = count(kHiddenLevels);
  each[kIntermediate] = count(kIntermediateLevels);
  each[kForm] = kForms;
  each[kDispatch] = 3;
  each[kDispatchSms] = count(kDispatchSmsLevels);
  each[kCombineSms] = count(kCombineSmsLevels);
  each[kTokensPerBlock] = count(kTokensPerBlockLevels);
  each[kHead] = count(kHeadLevels);
  each[kSlotOrder] = 3;
  each[kTile] = kTilesTested;
  each[kSchedule] = 3;
  each[kTileCounter] = 3;
  each[kChunks] = count(kChunksLevels);
  return each;
}

// The level of a factor, if it is chosen.
template <std::size_t N>
int value(const PairwiseCase& c, Factor factor, const std::array<int, N>& of_level, int if_open) {
  const int level = c[factor];
  return level == kOpen ? if_open : of_level[static_cast<std::size_t>(level)];
}

bool may_be(const PairwiseCase& c) {
  constexpr int kMost = 1 << 30;
  if (value(c, kTopk, kTopkLevels, 1) > value(c, kExperts, kExpertsLevels, kMost)) {
    return false;
  }
  const bool gathers = c[kDispatch] == static_cast<int>(Dispatch::gather) ||
                       c[kDispatch] == static_cast<int>(Dispatch::push);
  if (gathers && c[kTile] != kOpen && is_by_row_steps(tested_tile(c[kTile])) &&
      (tested_tile(c[kTile]) != TileShape::m160n256 ||
       c[kActivation] == static_cast<int>(Activation::separate))) {
    return false;
  }
  if (gathers && value(c, kHidden, kHiddenLevels, 64) % 64 != 0) {
    return false;  // rows are gathered in pieces of 64
  }
  if (c[kDispatch] == static_cast<int>(Dispatch::push)) {
    const bool in_prologue =
        c[kSchedule] == kOpen || c[kSchedule] == static_cast<int>(ScheduleSite::fused);
    if (value(c, kRanks, kRanksLevels, 2) == 1 || !in_prologue) {
      return false;
    }
  }
  if (value(c, kHead, kHeadLevels, 100) < 100) {
    const bool room =
        (c[kTile] == kOpen || is_by_row_steps(tested_tile(c[kTile]))) &&
        (c[kActivation] == kOpen || c[kActivation] == static_cast<int>(Activation::fused));
    if (gathers || value(c, kDispatchSms, kDispatchSmsLevels, 0) > 0 || !room) {
      return false;
    }
  }
  const int tokens = value(c, kTokens, kTokensLevels, 64);
  const int chunks = value(c, kChunks, kChunksLevels, 1);
  if ((chunks == kEach ? tokens : chunks) > std::min(tokens, 64)) {
    return false;
  }
  const bool programmatic = c[kLaunch] == static_cast<int>(LaunchOrder::programmatic);
  if (programmatic &&
      (c[kForm] == kPerJob || c[kActivation] == static_cast<int>(Activation::separate))) {
    return false;
  }
  // Without communication blocks in kernel 2 the compute blocks must lend their hands.
  const bool may_lend = c[kForm] == kOpen || c[kForm] == kAllHands || c[kForm] == kSerial;
  return value(c, kCombineSms, kCombineSmsLevels, 1) > 0 || may_lend;
}

Shape shape_of(const PairwiseCase& c) {
  return make_shape(value(c, kRanks, kRanksLevels, 0), value(c, kTokens, kTokensLevels, 0),
                    value(c, kHidden, kHiddenLevels, 0), value(c, kExperts, kExpertsLevels, 0),
                    value(c, kTopk, kTopkLevels, 0),
                    value(c, kIntermediate, kIntermediateLevels, 0));
}

Config config_of(const PairwiseCase& c) {
  Config config;
  config.form = c[kForm] == kSerial ? LayerForm::serial : LayerForm::fused;
  config.combine = c[kForm] == kPerJob ? Combine::block_per_job : Combine::dispenser;
  config.all_hands = c[kForm] == kAllHands || c[kForm] == kSerial;
  config.dispatch = static_cast<Dispatch>(c[kDispatch]);
  config.dispatch_comm_sms = value(c, kDispatchSms, kDispatchSmsLevels, 0);
  config.combine_comm_sms = value(c, kCombineSms, kCombineSmsLevels, 0);
  config.tokens_per_block = value(c, kTokensPerBlock, kTokensPerBlockLevels, 0);
  config.dispatch_head = value(c, kHead, kHeadLevels, 0);
  config.pull_order = static_cast<PullOrder>(c[kPullOrder]);
  config.job_order = static_cast<JobOrder>(c[kJobOrder]);
  config.slot_order = static_cast<SlotOrder>(c[kSlotOrder]);
  const int chunks = value(c, kChunks, kChunksLevels, 0);
  config.watermark_chunks = chunks == kEach ? value(c, kTokens, kTokensLevels, 0) : chunks;
  config.activation = static_cast<Activation>(c[kActivation]);
  config.tile = tested_tile(c[kTile]);
  config.schedule = static_cast<ScheduleSite>(c[kSchedule]);
  config.tile_counter = static_cast<TileCounter>(c[kTileCounter]);
  config.launch = static_cast<LaunchOrder>(c[kLaunch]);
  config.graph = c[kGraph] == 0;
  return config;
}

Problem problem_of(const PairwiseCase& c, std::size_t number) {
  return make_test_problem(shape_of(c), matrix_routings().at(static_cast<std::size_t>(c[kRouting])),
                           number + 1);
}

std::vector<PairwiseCase> all_cases() {
  return Pairwise(levels(), may_be).cases();
}

// Needs no GPU.
TEST(PairwiseDesign, EveryPairMeetsInALegalCase) {
  const Device h200{0, "NVIDIA H200", 132, 232448, ""};
  auto missing = Pairwise(levels(), may_be).pairs();
  ASSERT_GT(missing.size(), 2000U);
  const std::vector<PairwiseCase> cases = all_cases();
  for (std::size_t i = 0; i < cases.size(); ++i) {
    ASSERT_TRUE(may_be(cases[i]));
    EXPECT_EQ(why_illegal_on_device(problem_of(cases[i], i), config_of(cases[i]), limits_of(h200)),
              "")
        << "case " << i << ": " << describe(config_of(cases[i]));
    for (const auto& pair : Pairwise::pairs_of(cases[i])) {
      missing.erase(pair);
    }
  }
  EXPECT_EQ(missing.size(), 0U);
  EXPECT_LE(cases.size(), 120U) << "as many as a GPU runs in a minute or so";
}

// A part of the cases each, so that a failure and a filter are narrow.
constexpr std::size_t kParts = 8;
class PairwiseMatrix : public testing::TestWithParam<std::size_t> {};

void run_part(std::size_t part, const std::vector<Device>& devices) {
  const std::vector<PairwiseCase> cases = all_cases();
  for (std::size_t i = part; i < cases.size(); i += kParts) {
    const Config config = as_built(config_of(cases[i]), devices);
    const Problem problem = problem_of(cases[i], i);
    ASSERT_EQ(why_illegal_on_device(problem, config, limits_of(devices.front())), "");
    LayerRunner runner(problem, devices, {.seed = i + 1, .deadline_ns = kTestDeadlineNs});
    EXPECT_EQ(checked_run(runner, config), "") << "case " << i << ": " << describe(problem) << "\n"
                                               << describe(config);
  }
}

TEST_P(PairwiseMatrix, OneDevice) {
  FUSESCOPE_NEED_DEVICES(devices, 1);
  run_part(GetParam(), devices);
}

TEST_P(PairwiseMatrix, TwoDevices) {
  FUSESCOPE_NEED_DEVICES(devices, 2);
  run_part(GetParam(), devices);
}

TEST_P(PairwiseMatrix, FourDevices) {
  FUSESCOPE_NEED_DEVICES(devices, 4);
  run_part(GetParam(), devices);
}

INSTANTIATE_TEST_SUITE_P(Parts, PairwiseMatrix, testing::Range(std::size_t{0}, kParts));

}  // namespace
}  // namespace fusescope::engine::cuda::test
