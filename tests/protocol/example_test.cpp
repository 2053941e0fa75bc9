// The example of docs/write-your-own-kernel.md: a kernel's protocol described, its bug found. Two ranks; each
// sums rows and pushes them to the other, and the last push raises the other's watermark.
#include <gtest/gtest.h>

#include <memory>

#include "protocol/model.hpp"

namespace fusescope::protocol {
namespace {

constexpr int kRanks = 2;
constexpr int kRows = 3;
constexpr int kBlocks = 2;  // per rank

// [places]
struct RankMemory {
  CellId input;    // [rows], this rank's partial sums
  CellId staging;  // [rows], written by the peer
  CellId smem;     // [blocks], one row each
  WordId dispenser, pushed, watermark;
};
// [places]

class PushRows final : public Model {
 public:
  PushRows(Machine& machine, bool waits_for_writes) : machine_(machine), waits_(waits_for_writes) {
    MachineSize size;
    size.devices = kRanks;
    size.device_of_rank = {0, 1};
    machine.reset(size);
    std::vector<WordId> aborts, claimed;
    std::vector<CellId> diagnoses;
    for (int r = 0; r < kRanks; ++r) {
      const auto rank = static_cast<std::int16_t>(r);
      Memory& memory = machine.memory();
      memory_[r] = {.input = memory.add({"input", rank}, kRows),
                    .staging = memory.add({"staging", rank}, kRows),
                    .smem = memory.add({"smem", rank}, kBlocks),
                    .dispenser = machine.add_words({"dispenser", rank}, 1, r),
                    .pushed = machine.add_words({"pushed", rank}, 1, r),
                    .watermark = machine.add_words({"watermark", rank}, 1, r, true)};
      aborts.push_back(machine.add_words({"abort", rank}, 1, r));
      claimed.push_back(machine.add_words({"diagnosed", rank}, 1, r));
      diagnoses.push_back(memory.add({"diagnosis", rank}, 1));
    }
    machine.guard(aborts, claimed, diagnoses);
  }

  void start() override {
    for (int rank = 0; rank < kRanks; ++rank) {
      Thread& stream = machine_.add_stream(rank, label(Role::stream, "stream", rank));
      machine_.start(stream, run(stream, *this));
    }
  }

 private:
  static Label label(Role role, const char* kernel, int rank, int block = -1) {
    return {role, kernel, static_cast<std::int16_t>(rank), static_cast<std::int16_t>(block), -1};
  }

  // [push]
  // One block: claims a row, copies it to the peer, counts it; the last to count raises the watermark.
  static Task push(Thread& t, PushRows& layer) {
    const RankMemory& mine = layer.memory_[t.rank()];
    const int peer = 1 - t.rank();
    const CellId buffer = mine.smem + t.label().block;
    for (;;) {
      const std::uint64_t claimed =
          co_await t.fetch_add(mine.dispenser, 1, Order::relaxed, Scope::gpu);
      if (claimed >= kRows) {
        break;
      }
      const int row = static_cast<int>(claimed);
      t.write(buffer, t.read(mine.input + row, 1), 1);
      t.fence_proxy_async();
      t.start_store({layer.memory_[peer].staging + row}, {buffer}, 1, peer);
      t.commit_group();
      if (layer.waits_) {
        co_await t.wait_stored();
      } else {
        co_await t.wait_read();  // the bug: the row may not be there yet
      }
      t.fence_proxy_async();
      t.fence(Scope::system);
      const std::uint64_t before = co_await t.fetch_add(mine.pushed, 1, Order::acq_rel, Scope::gpu);
      if (before + 1 == kRows) {
        co_await t.store(layer.memory_[peer].watermark, 1, Order::release, Scope::system);
      }
    }
  }
  // [push]

  static Task reduce(Thread& t, PushRows& layer) {
    const RankMemory& mine = layer.memory_[t.rank()];
    const bool raised = co_await t.wait_at_least(mine.watermark, 1, Order::acquire, Scope::system);
    if (raised) {
      for (int row = 0; row < kRows; ++row) {
        t.read(mine.staging + row, 1);
      }
    }
  }

  // [stream]
  static Task run(Thread& stream, PushRows& layer) {
    Machine& machine = layer.machine_;
    const int rank = stream.rank();
    for (int row = 0; row < kRows; ++row) {
      stream.write(layer.memory_[rank].input + row, static_cast<std::uint64_t>(row), 1);
    }
    const LaunchId kernel = machine.begin_launch();
    for (int block = 0; block < kBlocks; ++block) {
      Thread& t =
          machine.add_thread(stream, kernel, label(Role::pusher, "push", rank, block), true);
      machine.start(t, push(t, layer));
    }
    co_await stream.join(kernel);
    const LaunchId last = machine.begin_launch();
    Thread& t = machine.add_thread(stream, last, label(Role::reducer, "reduce", rank), false);
    machine.start(t, reduce(t, layer));
    co_await stream.join(last);
  }
  // [stream]

  Machine& machine_;
  bool waits_;
  std::array<RankMemory, kRanks> memory_{};
};

Explored explore_push(bool waits_for_writes) {
  return explore(
      [=](Machine& machine, std::uint64_t) {
        return std::make_unique<PushRows>(machine, waits_for_writes);
      },
      kRanks, 2'000, 1);
}

TEST(Example, TheProtocolHolds) {
  const Explored explored = explore_push(true);
  EXPECT_FALSE(explored.finding) << explored.finding->what;
  EXPECT_EQ(explored.schedules, 2'000);
}

TEST(Example, TheBugIsFoundAndItsScheduleShown) {
  const Explored explored = explore_push(false);
  ASSERT_TRUE(explored.finding);
  EXPECT_LT(explored.schedules, 100);
  ASSERT_FALSE(explored.trace.empty());
  EXPECT_NE(explored.trace.back().find("staging"), std::string::npos) << explored.trace.back();
}

}  // namespace
}  // namespace fusescope::protocol
