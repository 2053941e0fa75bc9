// The third kernel when a signal is not given: every kind of its waits ends in a diagnosis within the
// deadline, and the next run in the same process is right bit for bit. And what compute-sanitizer is run
// on: shapes so small that the slowest of its tools is done in a minute.
#include <chrono>

#include "base/error.hpp"
#include "engine/cuda/projection/test_support.hpp"

namespace fusescope::engine::cuda::projection::test {
namespace {

using kernels::Wait;

constexpr std::uint64_t kDeadlineNs = 100'000'000;
// Above the deadline: launches, copies and the reset afterwards.
constexpr double kSlackSeconds = 5;

struct Fault {
  std::string name;
  Faults faults;
  std::vector<std::string> said;           // what the message must contain, all of it
  std::vector<std::string> said_one = {};  // and one of these, if there are any
};

Faults lost_flag(Wait flag) {
  return {.lost = {.lost_flag = static_cast<std::int32_t>(flag)}, .rank = 0};
}

// All signals are lost by rank 0, T = 129: token 134 is rank 1's row 5. Where `said_one` names the peer's
// watermark too, the two waits begin side by side.
std::vector<Fault> faults() {
  const std::string watermark = "the watermark of sending rank 0";
  return {
      {"barrier", lost_flag(Wait::barrier), {"rank 0 to arrive at the device barrier"}},
      {"start", lost_flag(Wait::start), {"rank 0 to arrive at the start line"}},
      {"fetch",
       {.lost = {.lost_pull = 134}, .rank = 0},
       {},
       {"the row of token 134 to land (bulk copy): expected 1, seen 0", watermark}},
      // H = 512 has 2 tiles of 256 columns.
      {"tile",
       {.lost = {.lost_tile = 0}, .rank = 0},
       {},
       {"row block 0 of", "(done counter): expected 2, seen 1", watermark}},
      {"push", {.lost = {.lost_push = 134}, .rank = 0}, {"rank 1 block ", watermark}},
      {"watermark", {.lost = {.lost_watermark = 1}, .rank = 0}, {"rank 1 block ", watermark}},
      {"dead rank", {.dead_rank = 1}, {"rank 0 block ", "rank 1", "expected ", "seen "}},
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

void expect_error_in_time(Runner& runner, const Fault& fault) {
  const auto begin = std::chrono::steady_clock::now();
  try {
    runner.run_once();
    ADD_FAILURE() << "the fault went unnoticed";
  } catch (const CheckFailure& failure) {
    EXPECT_EQ(failure.kind(), CheckFailure::Kind::aborted);
    expect_diagnosis(failure.what(), fault);
  }
  const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - begin;
  EXPECT_LT(spent.count(), 1e-9 * static_cast<double>(kDeadlineNs) + kSlackSeconds);
}

void run_faults(const std::vector<Device>& devices, const Config& config) {
  Runner runner(make_shape(2, 129, 512, 128), devices, {.seed = 6, .deadline_ns = kDeadlineNs});
  ASSERT_EQ(checked_run(runner, config), "");
  const Outputs right = read_outputs(runner);
  for (const Fault& fault : faults()) {
    SCOPED_TRACE("lost: " + fault.name);
    runner.configure(config, fault.faults);
    runner.memory().poison();
    expect_error_in_time(runner, fault);

    ASSERT_EQ(checked_run(runner, config), "") << "after the fault";
    EXPECT_EQ(first_difference(right, read_outputs(runner)), "") << "after the fault";
  }
}

struct Way {
  const char* name;
  Config config;
};

std::vector<Way> ways() {
  std::vector<Way> all = {{"split", {}},
                          {"split_no_graph", {}},
                          {"all_compute", {}},
                          {"not_all_hands", {}},
                          {"by_chunks", {}}};
  all[1].config.graph = false;
  all[2].config.push_sms = 0;
  all[3].config.all_hands = false;
  all[4].config.watermark_chunks = 5;
  all[4].config.pushers = 40;
  for (Way& way : all) {
    way.config.rows_per_push = 1;  // a diagnosis names a push's first token
  }
  return all;
}

class ReduceScatterFaults : public testing::TestWithParam<Way> {};

TEST_P(ReduceScatterFaults, OneDevice) {
  FUSESCOPE_NEED_DEVICES(devices, 1);
  run_faults(devices, GetParam().config);
}

TEST_P(ReduceScatterFaults, TwoDevices) {
  FUSESCOPE_NEED_DEVICES(devices, 2);
  run_faults(devices, GetParam().config);
}

INSTANTIATE_TEST_SUITE_P(Ways, ReduceScatterFaults, testing::ValuesIn(ways()),
                         [](const auto& tested) { return std::string(tested.param.name); });

TEST(ReduceScatterFault, DeadRankInTheFirstIteration) {
  FUSESCOPE_NEED_DEVICES(devices, 1);
  Runner runner(make_shape(3, 65, 512, 64), devices, {.seed = 6, .deadline_ns = kDeadlineNs});
  runner.configure(Config{}, {.dead_rank = 2});
  try {
    runner.run_once();
    ADD_FAILURE() << "the fault went unnoticed";
  } catch (const CheckFailure& failure) {
    EXPECT_TRUE(contains(failure.what(), "rank 2")) << failure.what();
  }
  EXPECT_EQ(checked_run(runner, Config{}), "");
}

// --- for compute-sanitizer -----------------------------------------------------------------------

std::vector<Way> forms() {
  std::vector<Way> all = {{"split", {}}, {"all_compute", {}}, {"by_rank", {}}, {"serial", {}}};
  all[1].config.push_sms = 0;
  all[1].config.watermark_chunks = 3;
  all[1].config.rows_per_push = 2;
  all[2].config.row_order = RowOrder::by_rank;
  all[2].config.tile = TileShape::m128n128;
  all[2].config.all_hands = false;
  all[2].config.graph = false;
  all[3].config.form = LayerForm::serial;
  return all;
}

enum class Fill { poisoned, as_it_comes };

// initcheck does not see what bulk copies write, and would call every later read of it uninitialised.
// What only ordinary stores and API copies write stays as it comes.
void poison_what_bulk_copies_write(const Memory& memory) {
  for (int r = 0; r < memory.ranks(); ++r) {
    const Rank& rank = memory.rank(r);
    const kernels::OnDevice on(rank.device);
    for (const DeviceArray& array : rank.arrays) {
      const void* at = array.block.get();
      if (at == rank.args.partial || at == rank.args.shared[r].staging) {
        FUSESCOPE_CUDA(cudaMemset(array.block.get(), 0xFF, array.bytes));
      }
    }
    FUSESCOPE_CUDA(cudaDeviceSynchronize());
  }
}

void run_sanitized(int ranks, const std::vector<Device>& devices, const Config& config, Fill fill) {
  Runner runner(make_shape(ranks, 33, 512, 64), devices,
                {.seed = 9, .deadline_ns = kTestDeadlineNs});
  runner.configure(config);
  if (fill == Fill::poisoned) {
    runner.memory().poison();
  } else {
    poison_what_bulk_copies_write(runner.memory());
  }
  runner.run_once();
  ASSERT_EQ(what_is_wrong(runner), "");
  runner.run_once();  // on what the first one left
  EXPECT_EQ(what_is_wrong(runner), "");
}

class ReduceScatterSanitized : public testing::TestWithParam<Way> {};

TEST_P(ReduceScatterSanitized, OneRank) {
  FUSESCOPE_NEED_DEVICES(devices, 1);
  run_sanitized(1, devices, GetParam().config, Fill::poisoned);
}

TEST_P(ReduceScatterSanitized, TwoRanksOnOneDevice) {
  FUSESCOPE_NEED_DEVICES(devices, 1);
  run_sanitized(2, devices, GetParam().config, Fill::poisoned);
}

TEST_P(ReduceScatterSanitized, TwoDevices) {
  FUSESCOPE_NEED_DEVICES(devices, 2);
  run_sanitized(2, devices, GetParam().config, Fill::poisoned);
}

// For initcheck: poison counts as initialised.
TEST_P(ReduceScatterSanitized, FreshMemory) {
  FUSESCOPE_NEED_DEVICES(devices, 1);
  run_sanitized(2, devices, GetParam().config, Fill::as_it_comes);
}

INSTANTIATE_TEST_SUITE_P(Forms, ReduceScatterSanitized, testing::ValuesIn(forms()),
                         [](const auto& tested) { return std::string(tested.param.name); });

}  // namespace
}  // namespace fusescope::engine::cuda::projection::test
