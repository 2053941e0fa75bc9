// The memory model, edge by edge: what hands a row on, and what only looks as if it did.
#include <gtest/gtest.h>

#include "litmus.hpp"

namespace fusescope::protocol::test {
namespace {

void expect_ordered(const std::vector<Actor>& actors) {
  const std::optional<Finding> finding = finding_of(actors);
  EXPECT_FALSE(finding) << finding->what;
}

void expect(FindingKind kind, const std::vector<Actor>& actors) {
  const std::optional<Finding> finding = finding_of(actors);
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->kind, kind) << finding->what;
}

// Reads the row as soon as the flag is up; how depends on the parameter pack.
template <Order order, Scope scope>
Task reader(Thread& t, Places p) {
  co_await t.wait_at_least(p.flag, 1, order, scope);
  t.read(p.row, kStamp);
}
// The same, of a row that it will not use: only the order counts, not whether the row is there.
Task order_reader(Thread& t, Places p) {
  co_await t.wait_at_least(p.flag, 1, Order::acquire, Scope::system);
  t.read(p.row, kAnyStamp);
}
constexpr auto kReader = reader<Order::acquire, Scope::system>;

template <Order order, Scope scope>
Task writer(Thread& t, Places p) {
  t.write(p.row, 7, kStamp);
  co_await t.store(p.flag, 1, order, scope);
}

TEST(MemoryModel, ReleaseAndAcquireHandARowToAnotherGpu) {
  expect_ordered({{0, writer<Order::release, Scope::system>}, {1, kReader}});
}

TEST(MemoryModel, ARelaxedStoreHandsOnNothing) {
  expect(FindingKind::race, {{0, writer<Order::relaxed, Scope::system>}, {1, kReader}});
}

TEST(MemoryModel, ARelaxedPollHandsOnNothing) {
  expect(FindingKind::race,
         {{0, writer<Order::release, Scope::system>}, {1, reader<Order::relaxed, Scope::system>}});
}

TEST(MemoryModel, GpuScopeDoesNotReachAnotherGpu) {
  expect(FindingKind::race, {{0, writer<Order::release, Scope::gpu>}, {1, kReader}});
  expect(FindingKind::race,
         {{0, writer<Order::release, Scope::system>}, {1, reader<Order::acquire, Scope::gpu>}});
  expect_ordered(
      {{1, writer<Order::release, Scope::gpu>}, {1, reader<Order::acquire, Scope::gpu>}});
}

Task writer_with_fence(Thread& t, Places p) {
  t.write(p.row, 7, kStamp);
  t.fence(Scope::system);
  co_await t.store(p.flag, 1, Order::relaxed, Scope::system);
}
Task writer_behind_fence(Thread& t, Places p) {
  t.fence(Scope::system);
  t.write(p.row, 7, kStamp);
  co_await t.store(p.flag, 1, Order::relaxed, Scope::system);
}
Task reader_with_fence(Thread& t, Places p) {
  co_await t.wait_at_least(p.flag, 1, Order::relaxed, Scope::system);
  t.fence(Scope::system);
  t.read(p.row, kStamp);
}

TEST(MemoryModel, FencesMakeRelaxedAccessesReleaseAndAcquire) {
  expect_ordered({{0, writer_with_fence}, {1, reader_with_fence}});
  expect(FindingKind::race, {{0, writer_behind_fence}, {1, reader_with_fence}});
}

// Two threads count; the one that counts last hands both rows on.
template <Order order>
Task counting(Thread& t, Places p) {
  t.write(t.label().block == 0 ? p.source : p.smem, 7, kStamp);
  const std::uint64_t before = co_await t.fetch_add(p.near, 1, order, Scope::gpu);
  if (before == 1) {
    t.read(p.source, kStamp);
    t.read(p.smem, kStamp);
  }
}

TEST(MemoryModel, AnElectionIsAReleaseSequence) {
  expect_ordered({{0, counting<Order::acq_rel>}, {0, counting<Order::acq_rel>}});
  expect(FindingKind::race, {{0, counting<Order::release>}, {0, counting<Order::release>}});
}

Task remote_counting(Thread& t, Places p) {
  co_await t.fetch_add(p.flag, 1, Order::relaxed, Scope::system);
}

TEST(MemoryModel, AtomicsStayOnTheirGpu) {
  expect_ordered({{1, remote_counting}});
  expect(FindingKind::atomic, {{0, remote_counting}});
}

Task hasty_reader(Thread& t, Places p) {
  t.read(p.row, kStamp);
  co_return;
}
// Where the reader comes first it reads nothing that was written: a row that it will not use.
Task careless_reader(Thread& t, Places p) {
  t.read(p.row, kAnyStamp);
  co_return;
}
Task writes_too(Thread& t, Places p) {
  t.write(p.row, 7, kStamp);
  co_return;
}

TEST(MemoryModel, UnorderedAccessesAreARaceInEitherOrder) {
  expect(FindingKind::race, {{1, careless_reader}, {1, writes_too}});
  expect(FindingKind::race, {{1, writes_too}, {1, writes_too}});
  expect(FindingKind::stale, {{1, hasty_reader}});
}

// A row through shared memory to the other GPU, by bulk copies.
enum class Wait { none, read, written };
template <Wait wait, bool loads_fenced, bool stores_fenced>
Task pusher(Thread& t, Places p) {
  t.write(p.source, 7, kStamp);
  if (loads_fenced) {
    t.fence_proxy_async();
  }
  t.init_mbarrier(p.landed, 1, true);
  t.arrive_expecting(p.landed, 1);
  t.start_load({p.smem, 2}, {p.source}, 1, kStamp, p.landed, 0);
  co_await t.wait_phase(p.landed, 0);
  t.start_store({p.row}, {p.smem, 2}, kStamp, 1);
  t.commit_group();
  if (wait == Wait::read) {
    co_await t.wait_read();
  } else if (wait == Wait::written) {
    co_await t.wait_stored();
  }
  if (stores_fenced) {
    t.fence_proxy_async();
  }
  co_await t.store(p.flag, 1, Order::release, Scope::system);
  co_await t.wait_stored();
}

TEST(MemoryModel, BulkCopiesNeedTheirWaitAndBothProxyFences) {
  expect_ordered({{0, pusher<Wait::written, true, true>}, {1, kReader}});
  expect(FindingKind::race, {{0, pusher<Wait::none, true, true>}, {1, order_reader}});
  expect(FindingKind::race, {{0, pusher<Wait::read, true, true>}, {1, order_reader}});
  expect(FindingKind::race, {{0, pusher<Wait::written, false, true>}, {1, kReader}});
  expect(FindingKind::race, {{0, pusher<Wait::written, true, false>}, {1, kReader}});
}

Task reuses_shared_memory(Thread& t, Places p) {
  t.write(p.smem, 7, kStamp);
  t.fence_proxy_async();
  t.start_store({p.row}, {p.smem}, kStamp, 1);
  t.commit_group();
  t.write(p.smem, 8, kStamp);  // the copy may not have read it
  co_await t.wait_stored();
}
Task ends_early(Thread& t, Places p) {
  t.write(p.smem, 7, kStamp);
  t.fence_proxy_async();
  t.start_store({p.row}, {p.smem}, kStamp, 1);
  t.commit_group();
  co_await t.pause();
}

TEST(MemoryModel, SharedMemoryBelongsToTheCopyUntilItWasRead) {
  expect(FindingKind::race, {{0, reuses_shared_memory}});
  expect(FindingKind::incomplete, {{0, ends_early}});
}

// Two barriers, of which the second's phase is the row's landing.
template <bool waits>
Task waits_for_either(Thread& t, Places p) {
  t.write(p.source, 7, kStamp);
  t.fence_proxy_async();
  t.init_mbarrier(p.landed, 1, false);
  t.init_mbarrier(p.landed + 1, 1, true);
  t.arrive_expecting(p.landed + 1, 1);
  t.start_load({p.smem}, {p.source}, 1, kStamp, p.landed + 1, 0);
  co_await t.wait_either({p.landed, 0}, {p.landed + 1, 0}, false);
  if (t.has_passed(p.landed, 0) || !t.has_passed(p.landed + 1, 0)) {
    t.read(p.other, kStamp);  // nobody writes it: says that this was reached
  }
  if (waits) {
    co_await t.wait_phase(p.landed + 1, 0);
  }
  t.read(p.smem, kStamp);
}
Task waits_for_neither(Thread& t, Places p) {
  t.init_mbarrier(p.landed, 1, false);
  t.init_mbarrier(p.landed + 1, 1, false);
  co_await t.wait_either({p.landed, 0}, {p.landed + 1, 0}, true);
}

TEST(MemoryModel, AWaitForEitherBarrierHandsOnNothing) {
  expect_ordered({{0, waits_for_either<true>}});
  expect(FindingKind::race, {{0, waits_for_either<false>}});
  expect(FindingKind::deadlock, {{0, waits_for_neither}});
}

// A row into shared memory by a plain asynchronous copy, and what reads it there.
enum class Reads { itself, wgmma };
template <Reads reads, bool source_fenced, bool landed_fenced>
Task copies_plainly(Thread& t, Places p) {
  t.write(p.source, 7, kStamp);
  if (source_fenced) {
    t.fence_proxy_async();
  }
  t.init_mbarrier(p.landed, 1, true);
  t.arrive_expecting(p.landed, 1);
  t.start_plain_load({p.smem}, {p.source}, kStamp, p.landed, 0);
  co_await t.wait_phase(p.landed, 0);
  if (landed_fenced) {
    t.fence_proxy_async();
  }
  std::uint64_t value = 0;
  if (reads == Reads::wgmma) {
    t.wgmma_read({p.smem}, kStamp, &value);
    t.wgmma_wait();
  } else {
    value = t.read(p.smem, kStamp);
  }
  if (value != 7) {
    t.read(p.other, kStamp);  // nobody writes it: says that this was reached
  }
}

TEST(MemoryModel, PlainCopiesBelongToTheGenericProxy) {
  expect_ordered({{0, copies_plainly<Reads::itself, false, false>}});
  expect_ordered({{0, copies_plainly<Reads::wgmma, false, true>}});
  expect(FindingKind::race, {{0, copies_plainly<Reads::wgmma, true, false>}});
}

Task writes_row(Thread& t, Places p) {
  t.write(p.source, 7, kStamp);
  co_return;
}
template <std::int32_t stamp>
Task reads_row(Thread& t, Places p) {
  t.read(p.source, stamp);
  co_return;
}
Task reads_past_caches(Thread& t, Places p) {
  t.read_past_caches(p.source, kAnyStamp);
  co_return;
}
Task writes_and_says_so(Thread& t, Places p) {
  t.write(p.source, 7, kStamp);
  co_await t.store(p.near, 1, Order::release, Scope::gpu);
}
Task hears_of_row(Thread& t, Places p) {
  co_await t.wait_at_least(p.near, 1, Order::acquire, Scope::gpu);
  t.read(p.source, kStamp);
}

TEST(MemoryModel, AKernelKnowsWhatTheOneBeforeItDid) {
  expect_ordered({{0, writes_row}, {0, reads_row<kStamp>, Kernel::second}});
}

// Not even what the kernels before the one that still runs did.
TEST(MemoryModel, AKernelThatBeginsEarlyKnowsNothing) {
  expect(FindingKind::race, {{0, writes_row}, {0, reads_row<kStamp>, Kernel::early}});
  expect(FindingKind::race,
         {{0, writes_row, Kernel::second}, {0, reads_row<kAnyStamp>, Kernel::early}});
  expect_ordered({{0, writes_and_says_so, Kernel::second}, {0, hears_of_row, Kernel::early}});
}

TEST(MemoryModel, PastTheCachesItFindsWhatEndedBeforeItsLaunch) {
  expect_ordered({{0, writes_row}, {0, reads_past_caches, Kernel::early}});
  expect(FindingKind::race,
         {{0, writes_row, Kernel::second}, {0, reads_past_caches, Kernel::early}});
}

Task waits_for_load(Thread& t, Places p) {
  co_await t.wait_phase(p.landed, 0);
  t.read(p.smem, kStamp);
}
Task looks_elsewhere(Thread& t, Places) {
  co_await t.pause();
}
// Starts a load and ends; another thread of its block is there.
template <Body other, bool leaves>
Task loads_for(Thread& t, Places p) {
  t.init_mbarrier(p.landed, 1, true);
  t.write(p.source, 7, kStamp);
  t.fence_proxy_async();
  Thread& second = t.machine().fork(t, t.label(), false);
  if (leaves) {
    t.leave_loads_to(second);
  }
  t.arrive_expecting(p.landed, 1);
  t.start_load({p.smem}, {p.source}, 1, kStamp, p.landed, 0);
  t.machine().start(second, other(second, p));
  co_await t.pause();
}

TEST(MemoryModel, SomebodyStaysForALoad) {
  expect_ordered({{0, loads_for<waits_for_load, true>}});
  expect(FindingKind::incomplete, {{0, loads_for<waits_for_load, false>}});
  expect(FindingKind::incomplete, {{0, loads_for<looks_elsewhere, true>}});
}

template <int threads, int count>
Task meeting(Thread& t, Places p) {
  if (t.label().block == 0) {
    t.write(p.smem, 7, kStamp);
  }
  co_await t.meet(p.barrier, threads, count);
  t.read(p.smem, kStamp);
}

TEST(MemoryModel, NamedBarriersOrderAndMustAgree) {
  expect_ordered({{0, meeting<32, 64>}, {0, meeting<32, 64>}});
  expect(FindingKind::barrier, {{0, meeting<32, 64>}, {0, meeting<32, 96>}});
  expect(FindingKind::barrier, {{0, meeting<32, 64>}, {0, meeting<64, 64>}});
  expect(FindingKind::deadlock, {{0, meeting<32, 96>}, {0, meeting<32, 96>}});
}

// Two phases end by one thread, with a wait between them that has nothing to wait for.
Task ends_two_phases(Thread& t, Places p) {
  t.init_mbarrier(p.landed, 1, false);
  t.init_mbarrier(p.landed + 1, 1, false);
  co_await t.store(p.near, 1, Order::release, Scope::system);
  t.arrive(p.landed);
  co_await t.wait_phase(p.landed, 0);
  t.arrive(p.landed + 1);
}
Task looks_between(Thread& t, Places p) {
  co_await t.wait_at_least(p.near, 1, Order::acquire, Scope::system);
  co_await t.wait_phase(p.landed, 0);
  if (!t.has_passed(p.landed + 1, 0)) {
    t.read(p.other, kStamp);  // nobody writes it: says that this was reached
  }
}

TEST(MemoryModel, OthersRunAtWaitsThatAreOver) {
  expect(FindingKind::stale, {{0, ends_two_phases}, {0, looks_between}});
}

Task waits_for_ever(Thread& t, Places p) {
  co_await t.wait_at_least(p.flag, 1, Order::acquire, Scope::system);
}

TEST(MemoryModel, NothingToGoOnWithIsADeadlock) {
  const std::optional<Finding> finding = finding_of({{1, waits_for_ever}});
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->kind, FindingKind::deadlock);
  EXPECT_NE(finding->what.find("flag of rank 1: expected 1, is 0"), std::string::npos)
      << finding->what;
}

Task initialises(Thread& t, Places p) {
  t.initialise(p.near, 0, 1);
  co_return;
}
Task counts(Thread& t, Places p) {
  co_await t.fetch_add(p.near, 1, Order::relaxed, Scope::gpu);
}

TEST(MemoryModel, CountersAreSetUpBeforeTheyAreUsed) {
  expect(FindingKind::race, {{0, initialises}, {0, counts}});
}

// A relaxed load may return a value that is no longer the newest, but not one older than what the thread
// knows to have been overwritten.
Task stores_twice(Thread& t, Places p) {
  co_await t.store(p.flag, 1, Order::release, Scope::system);
  co_await t.store(p.flag, 2, Order::release, Scope::system);
  co_await t.store(p.near, 1, Order::release, Scope::system);
}
Task loads_once(Thread& t, Places p) {
  const std::uint64_t value = co_await t.load(p.flag, Order::relaxed, Scope::system);
  if (value == 1) {
    t.read(p.other, kStamp);  // nobody writes it: says that this was reached
  }
}
Task loads_behind(Thread& t, Places p) {
  co_await t.wait_at_least(p.near, 1, Order::acquire, Scope::system);
  const std::uint64_t value = co_await t.load(p.flag, Order::relaxed, Scope::system);
  if (value != 2) {
    t.read(p.other, kStamp);
  }
}

TEST(MemoryModel, RelaxedLoadsMayBeLate) {
  expect(FindingKind::stale, {{0, stores_twice}, {1, loads_once}});
  expect_ordered({{0, stores_twice}, {1, loads_behind}});
}

// A word that is itself what is handed over.
Task sends_data(Thread& t, Places p) {
  t.write(p.row, 7, kStamp);
  co_await t.store(p.data, 1, Order::relaxed, Scope::system);
}
template <std::uint64_t too_many>
Task takes_data(Thread& t, Places p) {
  const std::uint64_t value = co_await t.take_at_least(p.data, 1, Order::relaxed, Scope::system);
  if (value == too_many) {
    t.read(p.other, kStamp);  // nobody writes it: says that this was reached
  }
}
Task takes_data_and_reads_row(Thread& t, Places p) {
  co_await t.take_at_least(p.data, 1, Order::relaxed, Scope::system);
  t.read(p.row, kStamp);
}

TEST(MemoryModel, ADataWordHandsOnItselfAndNothingElse) {
  expect_ordered({{0, sends_data}, {1, takes_data<0>}});
  expect(FindingKind::stale, {{0, sends_data}, {1, takes_data<1>}});
  expect(FindingKind::race, {{0, sends_data}, {1, takes_data_and_reads_row}});
}

// The next value, in an order with who takes this one, or in none.
template <bool waits>
Task sends_data_twice(Thread& t, Places p) {
  co_await t.store(p.data, 1, Order::relaxed, Scope::system);
  if (waits) {
    co_await t.wait_at_least(p.near, 1, Order::acquire, Scope::system);
  }
  co_await t.store(p.data, 2, Order::relaxed, Scope::system);
}
template <Order order>
Task takes_data_and_says_so(Thread& t, Places p) {
  co_await t.take_at_least(p.data, 1, Order::relaxed, Scope::system);
  co_await t.store(p.near, 1, order, Scope::system);
}

TEST(MemoryModel, ADataWordIsOverwrittenBehindItsLoads) {
  expect_ordered({{0, sends_data_twice<true>}, {1, takes_data_and_says_so<Order::release>}});
  expect(FindingKind::race,
         {{0, sends_data_twice<true>}, {1, takes_data_and_says_so<Order::relaxed>}});
  expect(FindingKind::race,
         {{0, sends_data_twice<false>}, {1, takes_data_and_says_so<Order::release>}});
}

// Of those that are enough, any value may be the one that is taken, the newest and the oldest.
Task sends_data_then_flag(Thread& t, Places p) {
  co_await t.store(p.data, 1, Order::relaxed, Scope::system);
  co_await t.store(p.data, 2, Order::relaxed, Scope::system);
  co_await t.store(p.flag, 1, Order::relaxed, Scope::system);
}
template <std::uint64_t unwanted>
Task takes_data_late(Thread& t, Places p) {
  co_await t.wait_at_least(p.flag, 1, Order::relaxed, Scope::system);
  const std::uint64_t value = co_await t.take_at_least(p.data, 1, Order::relaxed, Scope::system);
  if (value == unwanted) {
    t.read(p.other, kStamp);  // nobody writes it: says that this was reached
  }
}

TEST(MemoryModel, ADataWordMayBeTakenTooLate) {
  expect(FindingKind::stale, {{0, sends_data_then_flag}, {1, takes_data_late<1>}});
  expect(FindingKind::stale, {{0, sends_data_then_flag}, {1, takes_data_late<2>}});
}

}  // namespace
}  // namespace fusescope::protocol::test
