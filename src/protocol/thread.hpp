#pragma once
// One thread of the device, as protocols are written for it: the memory operations of the kernels, under
// the kernels' names. What does not synchronise is an ordinary call (its place in the schedule cannot
// matter: a conflict is a race wherever it falls); what does is awaited, and the schedule may put any
// other step before it.

#include <array>
#include <coroutine>
#include <cstdint>

#include "engine/sim/scheduler.hpp"
#include "protocol/clock.hpp"
#include "protocol/memory.hpp"
#include "protocol/names.hpp"
#include "protocol/sync.hpp"

namespace fusescope::protocol {

class Machine;
class Thread;
struct Copy;
using MbarrierId = std::int32_t;
using BarrierId = std::int32_t;
using LaunchId = std::int32_t;

// Cells [first, first + count).
struct Span {
  CellId first;
  int count = 1;
};

// What a thread is blocked on.
enum class Blocked : std::uint8_t { no, word, phase, either, meeting, stored, read, launch, sms };

// The awaiters. Each is a scheduling point, or blocks until its condition holds and is one then.
struct StepPoint {
  Thread& thread;
  bool await_ready() const noexcept { return false; }
  void await_suspend(std::coroutine_handle<> who) const;
};
struct Pause : StepPoint {
  void await_resume() const noexcept {}
};
struct LoadWord : StepPoint {
  WordId word;
  Order order;
  Scope scope;
  std::uint64_t await_resume() const;
};
struct StoreWord : StepPoint {
  WordId word;
  std::uint64_t value;
  Order order;
  Scope scope;
  void await_resume() const;
};
struct AddWord : StepPoint {
  WordId word;
  std::uint64_t add;
  Order order;
  Scope scope;
  std::uint64_t await_resume() const;  // the value before
};
struct WaitWord {
  Thread& thread;
  WordId word;
  std::uint64_t expected;
  Order order;
  Scope scope;
  bool bounded;
  bool await_ready() const noexcept { return false; }
  void await_suspend(std::coroutine_handle<> who) const;
  bool await_resume() const;  // false: out of time, or some other wait of the layer was
  // The value that ends the wait, or that is there when it is given up. `any`: by choice one of those that may be
  // seen, not the oldest.
  std::uint64_t see(bool any) const;
};
struct TakeWord : WaitWord {
  std::uint64_t await_resume() const;
};
struct WaitPhase {
  Thread& thread;
  MbarrierId mbarrier;
  std::uint32_t parity;
  bool bounded;
  bool await_ready() const noexcept { return false; }
  void await_suspend(std::coroutine_handle<> who) const;
  bool await_resume() const;
};
// Of an mbarrier: it is over when the barrier has passed the parity.
struct Phase {
  MbarrierId mbarrier;
  std::uint32_t parity;
};
struct WaitEither {
  Thread& thread;
  Phase first, second;
  bool bounded;
  bool await_ready() const noexcept { return false; }
  void await_suspend(std::coroutine_handle<> who) const;
  void await_resume() const;
};
struct Meeting {
  Thread& thread;
  BarrierId barrier;
  std::uint32_t generation;  // that the thread waits to be over
  bool await_ready() const noexcept { return false; }
  void await_suspend(std::coroutine_handle<> who) const;
  bool await_resume() const;  // whether all votes were true
};
struct WaitGroups {
  Thread& thread;
  int pending;  // groups that may still be under way
  bool reads;   // only until shared memory has been read
  bool await_ready() const noexcept { return false; }
  void await_suspend(std::coroutine_handle<> who) const;
  void await_resume() const;
};
struct WaitLaunch {
  Thread& thread;
  LaunchId launch;
  bool gives_back;  // its threads and clock components
  bool await_ready() const noexcept { return false; }
  void await_suspend(std::coroutine_handle<> who) const;
  void await_resume() const;
};
struct TakeSms {
  Thread& thread;
  int count;
  bool await_ready() const noexcept { return false; }
  void await_suspend(std::coroutine_handle<> who) const;
  void await_resume() const;
};

class Thread {
 public:
  explicit Thread(Machine& machine, std::int32_t index) : machine_(machine), index_(index) {}

  Machine& machine() const { return machine_; }
  engine::sim::FramePool& frame_pool() const;
  int rank() const { return label_.rank; }
  const Label& label() const { return label_; }
  LaunchId launch() const { return launch_; }
  int device() const { return device_; }

  // --- plain loads and stores ----------------------------------------------------------------------
  std::uint64_t read(CellId cell, std::int32_t stamp) const;
  // A relaxed load past the caches that are not coherent: besides what the thread knows, it finds what was
  // written before the launch of its kernel could be asked for.
  std::uint64_t read_past_caches(CellId cell, std::int32_t stamp) const;
  void write(CellId cell, std::uint64_t value, std::int32_t stamp) const;

  // --- fences --------------------------------------------------------------------------------------
  void fence(Scope scope);   // __threadfence(), __threadfence_system()
  void fence_proxy_async();  // orders both proxies' accesses, either way
  void wgmma_read(Span cells, std::int32_t stamp, std::uint64_t* values) const;
  void wgmma_wait();  // their reads are over

  // --- words ---------------------------------------------------------------------------------------
  LoadWord load(WordId word, Order order, Scope scope) { return {{*this}, word, order, scope}; }
  StoreWord store(WordId word, std::uint64_t value, Order order, Scope scope) {
    return {{*this}, word, value, order, scope};
  }
  AddWord fetch_add(WordId word, std::uint64_t add, Order order, Scope scope) {
    return {{*this}, word, add, order, scope};
  }
  // A plain store to a word that others use atomically: nobody may be at it at that time.
  void initialise(WordId word, std::uint64_t value, std::uint64_t most);
  WaitWord wait_at_least(WordId word, std::uint64_t expected, Order order, Scope scope,
                         bool bounded = true) {
    return {*this, word, expected, order, scope, bounded};
  }
  // The same wait for a word that carries data: what it saw, which is less where it gave up.
  TakeWord take_at_least(WordId word, std::uint64_t expected, Order order, Scope scope) {
    return {wait_at_least(word, expected, order, scope)};
  }

  // --- bulk copies ---------------------------------------------------------------------------------
  // Global to shared memory; `landed` counts it. `checked` cells of `from` must carry the stamp.
  void start_load(Span to, Span from, int checked, std::int32_t stamp, MbarrierId landed, int peer);
  void start_constant_load(Span to, std::uint64_t value, std::int32_t stamp, MbarrierId landed);
  // A thread may not end before its loads have landed, unless another one of the block waits for them: then
  // that one may not.
  void leave_loads_to(const Thread& other) { loads_of_ = other.index_; }
  // The same by a plain asynchronous copy (PTX ISA, "cp.async"), which belongs to the generic proxy.
  void start_plain_load(Span to, Span from, std::int32_t stamp, MbarrierId landed, int peer);
  // Shared to global memory, in the thread's open group.
  void start_store(Span to, Span from, std::int32_t stamp, int peer);
  void commit_group();
  WaitGroups wait_stored(int pending = 0) { return {*this, pending, false}; }
  WaitGroups wait_read(int pending = 0) { return {*this, pending, true}; }
  // None of its copies may use shared memory any more. Checked at a thread's end; here, at the end of a role that
  // promises it.
  void leave_shared_memory() const;

  // --- barriers of a block -------------------------------------------------------------------------
  void init_mbarrier(MbarrierId id, int threads, bool loads);
  void expect_copies(MbarrierId id, int copies);
  void arrive(MbarrierId id, int count = 1);
  void arrive_expecting(MbarrierId id, int copies);
  bool has_passed(MbarrierId id, std::uint32_t parity) const;  // a test: learns nothing
  WaitPhase wait_phase(MbarrierId id, std::uint32_t parity, bool bounded = false) {
    return {*this, id, parity, bounded};
  }
  // For a thread that tests two in turn: until one of them is over, or the wait is given up. Learns nothing.
  WaitEither wait_either(Phase first, Phase second, bool bounded) {
    return {*this, first, second, bounded};
  }
  // bar.sync: `threads` of them arrive with this call, `count` in all. With a vote, __syncthreads_and.
  Meeting meet(BarrierId id, int threads, int count, bool vote = true);

  // --- streams -------------------------------------------------------------------------------------
  WaitLaunch join(LaunchId launch) { return {*this, launch, true}; }
  // Not by the stream that launched it: by somebody else to whom its end matters.
  WaitLaunch see_end_of(LaunchId launch) { return {*this, launch, false}; }
  TakeSms take_sms(int count) { return {*this, count}; }
  Pause pause() { return {{*this}}; }
  // A stream waits for an event of another: it learns what that stream knew then.
  void learn(const Thread& other);

 private:
  friend class Machine;
  friend struct StepPoint;
  friend struct LoadWord;
  friend struct StoreWord;
  friend struct AddWord;
  friend struct WaitWord;
  friend struct WaitPhase;
  friend struct WaitEither;
  friend struct Meeting;
  friend struct WaitGroups;
  friend struct WaitLaunch;
  friend struct TakeSms;

  struct Group {
    int to_read = 0;
    int to_write = 0;
    Tick reads_at = 0;
    Tick writes_at = 0;
  };
  static constexpr int kGroups = 64;

  Access generic_access() const;
  void load(Copy& copy, Span to, Span from, int checked, std::int32_t stamp, MbarrierId landed,
            int peer);
  void advance();  // what was published stays behind
  void publish(WordEntry& entry, Order order, Scope scope, bool keeps);
  void acquire(const WordEntry& entry, int device, Order order, Scope scope);
  bool groups_done(int pending, bool reads) const;
  void learn_groups(int pending, bool reads);
  void arrive_on(MbarrierId id);
  void give_up();

  Machine& machine_;
  std::int32_t index_;
  Label label_;
  LabelId label_id_ = -1;
  std::int16_t device_ = 0;
  LaunchId launch_ = -1;
  Component own_ = -1, store_reads_ = -1, store_writes_ = -1;
  Clock generic_, async_;
  // Of a kernel that begins before the one before it ends: see read_past_caches.
  Clock before_launch_;
  Clock fenced_gpu_, fenced_system_, pending_;
  bool has_fenced_gpu_ = false, has_fenced_system_ = false, has_pending_ = false;
  std::array<Group, kGroups> groups_;
  int committed_ = 0;           // groups so far
  int loads_ = 0;               // bulk loads that have not landed, for which this thread must stay
  std::int32_t loads_of_ = -1;  // the thread that must stay for this one's loads

  std::coroutine_handle<> handle_;
  engine::sim::Task::Handle root_;
  bool alive_ = false;
  std::int32_t ready_at_ = -1;
  std::int32_t bounded_at_ = -1;
  std::int32_t next_waiter_ = -1;
  Waiters* waiting_in_ = nullptr;
  Waiters own_waiters_;  // for its copies, or for either of two mbarriers
  Blocked blocked_ = Blocked::no;
  std::int32_t object_ = -1;
  std::uint64_t expected_ = 0;
  std::array<Phase, 2> either_{};
  bool is_bounded_ = false;
  bool timed_out_ = false;
};

}  // namespace fusescope::protocol
