#pragma once
// The machine that protocols run on: threads as coroutines, bulk copies as agents of their own, words,
// barriers, kernel launches. One step at a time, in an order that a Chooser decides; every edge that hands
// knowledge on is one that the code states, and every access to memory is checked against it.
//
// A run goes: reset, add places and threads, run(chooser), look at finding(). All storage is reused by the
// next run. Not thread-safe: one machine per host thread.

#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/sim/scheduler.hpp"
#include "protocol/chooser.hpp"
#include "protocol/memory.hpp"
#include "protocol/sync.hpp"
#include "protocol/thread.hpp"

namespace fusescope::protocol {

using engine::sim::Task;

struct MachineSize {
  int devices = 1;
  int components_per_device =
      32;       // clocks: threads and copy queues that live at once on one device
  int sms = 4;  // per device
  std::vector<int> device_of_rank;
};

// A kernel: its threads, and what those know who come after its end.
struct Launch {
  int live = 0;  // threads and copies that have not ended
  Clock end;
  std::vector<Component> components;  // given back when the stream goes on
  std::vector<std::int32_t> threads;
  Waiters waiters;
};

// A bulk copy under way.
struct Copy {
  std::int32_t index;
  Label label;
  LabelId who;
  std::int16_t from_rank, to_rank;
  std::int32_t thread, launch;
  CellId from, to;
  std::int16_t from_count, to_count;
  std::int16_t checked;  // of the cells read, how many must carry the stamp
  std::int32_t stamp;
  std::uint64_t constant;   // what is copied when there is no `from`
  MbarrierId mbarrier;      // loads: whose phase waits for it; -1 for stores
  std::int32_t group;       // stores: number of its group
  Component reads, writes;  // components of its two accesses
  Tick reads_at, writes_at;
  bool read_done;
  bool plain;  // through the generic proxy
  std::int32_t ready_at;
  std::array<std::uint64_t, 8> payload;
  Clock before, reads_before;
};

// What a row is whose parts are copied into one cell: the parts' value if they agree, else none of theirs.
std::uint64_t folded(const std::uint64_t* parts, int count);

class Machine final : private Candidates {
 public:
  Machine();
  ~Machine() override;
  Machine(const Machine&) = delete;
  Machine& operator=(const Machine&) = delete;

  void reset(const MachineSize& size);
  void clear();  // destroys what has not ended
  // Waits may run out of time: something is wrong with a rank.
  void allow_timeouts() { timeouts_ = true; }
  // From this step on nothing of the rank moves.
  void freeze(int rank, std::uint64_t at_step) {
    frozen_rank_ = rank;
    frozen_at_ = at_step;
  }
  // The word of each rank whose being non-zero ends its bounded waits, and what a wait does that gives up.
  void guard(std::vector<WordId> abort_words, std::vector<WordId> claimed,
             std::vector<CellId> diagnoses);

  // --- places ------------------------------------------------------------------------------------
  Memory& memory() { return memory_; }
  WordId add_words(Name name, int count, int device, bool grows = false);
  // Words that grow, and hand over what they hold.
  WordId add_data_words(Name name, int count, int device);
  MbarrierId add_mbarriers(int count);
  BarrierId add_barriers(int count);
  Word& word(WordId id) { return *words_[id]; }
  Mbarrier& mbarrier(MbarrierId id) { return *mbarriers_[id]; }
  NamedBarrier& barrier(BarrierId id) { return *barriers_[id]; }
  void forget_barriers(MbarrierId mbarriers, int mbarrier_count, BarrierId barriers,
                       int barrier_count);

  // --- threads -----------------------------------------------------------------------------------
  Thread& add_stream(int device, Label label);  // knows nothing yet
  LaunchId begin_launch();
  // A thread of a kernel that `stream` launches: it knows what the stream knows, its bulk copies only
  // what the device itself did.
  Thread& add_thread(Thread& stream, LaunchId launch, Label label, bool stores);
  // A thread of a kernel that begins while the one before it on the stream runs: it knows nothing. That the
  // stream has let the kernel begin hands on no more than coherence does (Thread::read_past_caches).
  Thread& add_early_thread(Thread& stream, LaunchId launch, Label label, bool stores);
  // A warp goes on as two: both know what it knew.
  Thread& fork(Thread& parent, Label label, bool stores);
  void give_stores(Thread& thread);  // a thread that starts to issue bulk stores
  void start(Thread& thread, Task task);
  int free_sms(int device) const { return free_sms_[device]; }
  void give_sms(int device, int count);
  bool has_ended(LaunchId launch) const { return launches_[launch]->live == 0; }
  // The threads and components of a launch that has ended, for others. What was known of them must be known
  // to who gets them next, or nothing known of these may be asked for.
  void give_back(LaunchId launch, int device);

  // --- running -----------------------------------------------------------------------------------
  // Until nothing can go on. A deadlock is a finding.
  void run(Chooser& chooser);
  std::uint64_t steps_run() const { return steps_; }
  const std::optional<Finding>& finding() const { return finding_; }
  void report(FindingKind kind, std::string what);
  bool aborted() const { return aborted_; }  // some wait has given up
  bool is_frozen(int rank) const { return rank == frozen_rank_ && steps_ >= frozen_at_; }
  // The host has waited for all devices: checks are on again, and waits have no reason to run out.
  void recover();
  // A host thread that has waited for everything.
  void tell_everything(Thread& stream) const;

  void trace_into(std::vector<std::string>* lines) { trace_ = lines; }
  bool traces() const { return trace_ != nullptr; }
  void note(const Thread& thread, std::string what);

  engine::sim::FramePool& frame_pool() { return frames_; }

 private:
  friend class Thread;
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

  // Candidates
  int size() const override;
  int steps_ready() const { return static_cast<int>(ready_.size()); }
  int steps() const override { return steps_ready(); }
  int preferred() const override;
  Candidate at(int index) const override;

  // threads
  Thread& new_thread(int device, LaunchId launch, Label label);
  Component take_component(int device, LaunchId launch);
  void finish(Thread& thread);
  void resume(Thread& thread);
  void make_ready(std::int32_t thread);
  void block(Thread& thread, Waiters& waiters);
  void unready(std::int32_t place);
  bool can_go_on(const Thread& thread) const;
  Waiters& waiters_of(Thread& thread);
  void wake(Waiters& waiters);
  void wake_all_bounded(int rank);
  void leave_bounded(Thread& thread);
  std::string waits_for(const Thread& thread) const;
  void report_stuck();
  void end_of_launch(Launch& launch);

  // copies
  Copy& new_copy();
  void start_copy(Copy& copy, const Thread& thread);
  void advance_copy(std::int32_t copy);
  void read_for(Copy& copy);
  void write_for(Copy& copy);
  void complete_phase_if_full(Mbarrier& mbarrier);
  static Access access_of(const Copy& copy, bool writing);
  int device_of(const WordEntry& entry) const {
    return size_.device_of_rank[labels_[entry.who].rank];
  }

  MachineSize size_;
  int width_ = 0;
  Memory memory_;
  std::vector<std::unique_ptr<Word>> words_;
  std::vector<std::unique_ptr<Mbarrier>> mbarriers_;
  std::vector<std::unique_ptr<NamedBarrier>> barriers_;
  std::size_t words_used_ = 0, mbarriers_used_ = 0, barriers_used_ = 0;
  std::vector<std::unique_ptr<Thread>> threads_;
  std::size_t threads_used_ = 0;
  std::vector<std::int32_t> free_threads_;
  std::vector<std::unique_ptr<Launch>> launches_;
  std::size_t launches_used_ = 0;
  std::vector<std::unique_ptr<Copy>> copies_;
  std::size_t copies_used_ = 0;
  std::vector<std::int32_t> free_copies_;
  std::vector<std::vector<Component>> free_components_;  // by device
  std::vector<Tick> ticks_;                              // by component: the last epoch used
  std::vector<int> free_sms_;
  std::vector<Waiters> sms_waiters_;

  std::vector<std::int32_t> ready_;    // threads; copies as ~index
  std::vector<std::int32_t> bounded_;  // blocked threads whose wait has a deadline
  std::int32_t last_ = -1;             // the thread that ran last
  int live_threads_ = 0;
  std::vector<Label> labels_;
  std::vector<WordId> abort_words_;
  std::vector<WordId> claimed_;
  std::vector<CellId> diagnoses_;
  bool timeouts_ = false;
  bool aborted_ = false;
  int frozen_rank_ = -1;
  std::uint64_t frozen_at_ = 0;
  std::uint64_t steps_ = 0;
  Chooser* chooser_ = nullptr;
  std::optional<Finding> finding_;
  std::exception_ptr error_;
  std::vector<std::string>* trace_ = nullptr;
  engine::sim::FramePool frames_;
};

}  // namespace fusescope::protocol
