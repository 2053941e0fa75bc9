// Every kind of wait, provoked by a signal that is not given: each ends in a diagnosis within the
// deadline, and the next run in the same process is right bit for bit.
#include <chrono>

#include "base/error.hpp"
#include "engine/cuda/cuda_test_support.hpp"

namespace fusescope::engine::cuda::test {
namespace {

using kernels::Wait;

constexpr std::uint64_t kDeadlineNs = 100'000'000;
// Above the deadline: launches, copies and the reset afterwards.
constexpr double kSlackSeconds = 5;

struct Fault {
  std::string name;
  Faults faults;
  std::vector<std::string> said = {};      // what the message must contain, all of it
  std::vector<std::string> said_one = {};  // and one of these, if there are any
  bool per_job_only = false;
  bool programmatic_only = false;
  Study study = Study::full;
  Inject inject = {};
};

Faults lost_flag(Wait flag) {
  return {.lost = {.lost_flag = static_cast<std::int32_t>(flag)}, .rank = 0};
}

constexpr int kHidden = 512;
constexpr int kIntermediate = 128;

// Of row block 0 of a GEMM with so many columns: the first tile is not counted.
std::string one_tile_less(const std::string& gemm, int columns, const Config& config) {
  const int tiles = (columns + tile_columns(config) - 1) / tile_columns(config);
  return "row block 0 of the " + gemm + ": expected " + std::to_string(tiles) + ", seen " +
         std::to_string(tiles - 1);
}

// All signals are lost by rank 0. Which wait runs out of time is certain wherever `said` names it:
// the wait begins while nothing else waits for what it waits for, or a kernel earlier than what does.
// `config`: with its GEMM chosen.
std::vector<Fault> faults(const Config& config) {
  const std::string pull = "the row of token 5 to land (bulk copy): expected 1, seen 0";
  const std::string gate = "to be filled (arrival counter): expected 128, seen 127";
  // With kernel 2 beside kernel 1, its gates and its jobs wait for what kernel 1's gates wait for, and a job's
  // wait may have begun before the gate's.
  const bool overlaps = config.launch == LaunchOrder::programmatic;
  const std::string next_gate = overlaps ? "(computed counter)" : gate;
  const std::string next_job = overlaps ? "(done counter)" : gate;
  const std::string watermark = "the watermark of sending rank 0";
  return {
      {.name = "ids",
       .faults = lost_flag(Wait::ids),
       .said = {"the ids of rank 0", "expected ", "seen "}},
      {.name = "barrier",
       .faults = lost_flag(Wait::barrier),
       .said = {"rank 0 to arrive at the device barrier"}},
      {.name = "start",
       .faults = lost_flag(Wait::start),
       .said = {"rank 0 to arrive at the start line"}},
      // With the gates open nothing but the pull itself waits for the row.
      {.name = "pull, gates open",
       .faults = {.lost = {.lost_pull = 5}, .rank = 0},
       .said = {"rank 0 block ", pull},
       .study = Study::gates_open},
      // A gate may have begun to wait for the row before its pull was tried.
      {.name = "pull",
       .faults = {.lost = {.lost_pull = 5}, .rank = 0},
       .said = {"rank 0 block "},
       .said_one = {pull, "(arrival counter)", next_gate, next_job}},
      {.name = "clock, gates open",
       .faults = {},
       .said = {"the end of an injected delay", "of token 5", "expected ", "seen "},
       .study = Study::gates_open,
       .inject = {InjectPoint::token, 3 * static_cast<int>(kDeadlineNs), -1, 5}},
      {.name = "gate",
       .faults = {.lost = {.lost_arrival = 5}, .rank = 0},
       .said = {"rank 0 block "},
       .said_one = {gate, next_gate, next_job}},
      {.name = "begun",
       .faults = lost_flag(Wait::begun),
       .said_one = {"kernel 1 to begin", watermark},
       .programmatic_only = true},
      {.name = "computed",
       .faults = {.lost = {.lost_activations = 0}, .rank = 0},
       .said_one = {one_tile_less("gate/up GEMM (computed counter)", 2 * kIntermediate, config),
                    "row block 0 of the down GEMM (done counter)", watermark},
       .programmatic_only = true},
      // The peer's final reduce waits too, perhaps first.
      {.name = "ready",
       .faults = {.lost = {.lost_tile = 0}, .rank = 0},
       .said_one = {one_tile_less("down GEMM (done counter)", kHidden, config), watermark}},
      {.name = "residency",
       .faults = {.lost = {.lost_residency = 0}, .rank = 0},
       .said = {"rank 0 block 0", "blocks to be resident"},
       .per_job_only = true},
      {.name = "push",
       .faults = {.lost = {.lost_push = 7}, .rank = 0},
       .said = {"rank 0 block ", watermark}},
      {.name = "watermark",
       .faults = {.lost = {.lost_watermark = 1}, .rank = 0},
       .said = {"rank 1 block ", watermark}},
      {.name = "dead rank",
       .faults = {.dead_rank = 1},
       .said = {"rank 0 block ", "rank 1", "expected ", "seen "}},
  };
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

void expect_diagnosis(const std::string& message, const Fault& fault) {
  for (const std::string& part : fault.said) {
    EXPECT_TRUE(contains(message, part)) << "\"" << part << "\" is not in: " << message;
  }
  if (!fault.said_one.empty()) {
    EXPECT_TRUE(std::any_of(fault.said_one.begin(), fault.said_one.end(),
                            [&](const std::string& part) { return contains(message, part); }))
        << message;
  }
}

void expect_error_in_time(LayerRunner& runner, const Fault& fault) {
  const auto begin = std::chrono::steady_clock::now();
  try {
    runner.run_once();
    ADD_FAILURE() << "the fault went unnoticed";
  } catch (const CheckFailure& failure) {
    expect_diagnosis(failure.what(), fault);
  }
  const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - begin;
  EXPECT_LT(spent.count(), 1e-9 * static_cast<double>(kDeadlineNs) + kSlackSeconds);
}

void run_faults(const std::vector<Device>& devices, const Config& config) {
  const Problem problem =
      make_test_problem(make_shape(2, 129, kHidden, 8, 2, kIntermediate), "uniform", 2);
  LayerRunner runner(problem, devices, {.seed = 6, .deadline_ns = kDeadlineNs});
  ASSERT_EQ(checked_run(runner, config), "");
  const Outputs right = read_outputs(runner);
  for (const Fault& fault : faults(with_gemm_chosen(config, limits_of(devices.front())))) {
    if (fault.per_job_only && config.combine != Combine::block_per_job) {
      continue;
    }
    if (fault.programmatic_only && config.launch != LaunchOrder::programmatic) {
      continue;
    }
    SCOPED_TRACE("lost: " + fault.name);
    Config faulty = config;
    faulty.study = fault.study;
    faulty.inject = fault.inject;
    runner.configure(faulty, fault.faults);
    if (fault.study == Study::full) {  // a study runs on what the full layer left
      runner.memory().poison();
    }
    expect_error_in_time(runner, fault);

    ASSERT_EQ(checked_run(runner, config), "") << "after the fault";
    EXPECT_EQ(first_difference(right, read_outputs(runner)), "") << "after the fault";
  }
}

struct Way {
  const char* name;
  bool graph;
  bool fetch_first;
  Combine combine;
  ScheduleSite schedule = ScheduleSite::fused;
  LaunchOrder launch = LaunchOrder::stream;
  Dispatch dispatch = Dispatch::scatter;
  TileShape tile = TileShape::automatic;
  int head = 100;
};

constexpr Way kWays[] = {
    {"graph_split_dispenser", true, false, Combine::dispenser},
    {"graph_split_per_job", true, false, Combine::block_per_job},
    {"graph_fetch_first_dispenser", true, true, Combine::dispenser},
    {"graph_fetch_first_per_job", true, true, Combine::block_per_job},
    {"no_graph_split_dispenser", false, false, Combine::dispenser},
    {"no_graph_split_per_job", false, false, Combine::block_per_job},
    {"no_graph_fetch_first_dispenser", false, true, Combine::dispenser},
    {"no_graph_fetch_first_per_job", false, true, Combine::block_per_job},
    {"graph_kernels_of_their_own", true, false, Combine::dispenser, ScheduleSite::device},
    {"no_graph_schedule_from_host", false, false, Combine::dispenser, ScheduleSite::host},
    {"graph_programmatic", true, true, Combine::dispenser, ScheduleSite::fused,
     LaunchOrder::programmatic},
    {"no_graph_programmatic", false, false, Combine::dispenser, ScheduleSite::device,
     LaunchOrder::programmatic},
    {"graph_split_gather", true, false, Combine::dispenser, ScheduleSite::fused,
     LaunchOrder::programmatic, Dispatch::gather},
    {"graph_fetch_first_gather", true, true, Combine::dispenser, ScheduleSite::fused,
     LaunchOrder::stream, Dispatch::gather},
    {"graph_gather_by_row_steps", true, true, Combine::dispenser, ScheduleSite::fused,
     LaunchOrder::programmatic, Dispatch::gather, TileShape::m160n256},
    {"graph_push_by_row_steps", true, true, Combine::dispenser, ScheduleSite::fused,
     LaunchOrder::programmatic, Dispatch::push, TileShape::m160n256},
    {"no_graph_split_push", false, false, Combine::dispenser, ScheduleSite::fused,
     LaunchOrder::stream, Dispatch::push},
    {"graph_fetch_beside_tiles", true, true, Combine::dispenser, ScheduleSite::fused,
     LaunchOrder::programmatic, Dispatch::scatter, TileShape::m160n256, 0},
    {"no_graph_fetch_beside_tiles", false, true, Combine::dispenser, ScheduleSite::device,
     LaunchOrder::stream, Dispatch::scatter, TileShape::m160n256, 0},
};

Config config_of(const Way& way) {
  Config config;
  config.graph = way.graph;
  config.dispatch = way.dispatch;
  config.dispatch_comm_sms = way.fetch_first ? 0 : 16;
  config.combine = way.combine;
  config.schedule = way.schedule;
  config.launch = way.launch;
  config.tile = way.tile;
  config.dispatch_head = way.head;
  if (way.launch == LaunchOrder::programmatic || way.head < 100) {
    config.activation = Activation::fused;
  }
  config.all_hands = way.combine == Combine::dispenser;
  return config;
}

class FaultMatrix : public testing::TestWithParam<Way> {};

TEST_P(FaultMatrix, OneDevice) {
  FUSESCOPE_NEED_DEVICES(devices, 1);
  run_faults(devices, as_built(config_of(GetParam()), devices));
}

TEST_P(FaultMatrix, TwoDevices) {
  FUSESCOPE_NEED_DEVICES(devices, 2);
  run_faults(devices, as_built(config_of(GetParam()), devices));
}

INSTANTIATE_TEST_SUITE_P(Ways, FaultMatrix, testing::ValuesIn(kWays),
                         [](const auto& tested) { return std::string(tested.param.name); });

// The first iteration of all, on tables that no build has written yet.
TEST(Faults, DeadRankInTheFirstIteration) {
  FUSESCOPE_NEED_DEVICES(devices, 1);
  const Problem problem = make_test_problem(make_shape(3, 65, 512, 8, 2, 128), "zipf", 2);
  LayerRunner runner(problem, devices, {.seed = 6, .deadline_ns = kDeadlineNs});
  runner.configure(Config{}, {.dead_rank = 2});
  try {
    runner.run_once();
    ADD_FAILURE() << "the fault went unnoticed";
  } catch (const CheckFailure& failure) {
    EXPECT_TRUE(contains(failure.what(), "rank 2")) << failure.what();
  }
  EXPECT_EQ(checked_run(runner, Config{}), "");
}

}  // namespace
}  // namespace fusescope::engine::cuda::test
