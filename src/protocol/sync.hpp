#pragma once
// What threads synchronise through: words in global memory (atomics with scopes and orders), mbarriers and
// named barriers in a block's shared memory. Each carries the clocks that its edges hand on.

#include <array>
#include <cstdint>
#include <limits>

#include "protocol/clock.hpp"
#include "protocol/names.hpp"

namespace fusescope::protocol {

enum class Order : std::uint8_t { relaxed, acquire, release, acq_rel };
enum class Scope : std::uint8_t { block, gpu, system };

using WordId = std::int32_t;

// A list of waiting threads, linked through them.
struct Waiters {
  std::int32_t first = -1;
};

struct WordEntry {
  std::uint64_t value;
  LabelId who;
  Component component;  // of the last to write it; -1 = the word's first value
  Tick tick;
  Scope scope;
  bool releases;  // `clock` means something
  bool plain;     // written by a plain store: readers must come after it
  Clock clock;    // what an acquire of this value learns
};

// Plain stores make a new entry, so that a reader may still see an older one; read-modify-writes always
// read the newest, and what was released there stays released (a release sequence).
struct Word {
  static constexpr int kHistory = 4;

  Name name;
  std::int16_t device = 0;  // whose memory it lies in
  bool grows = false;       // a flag: stores must raise it
  bool carries = false;     // data: stores must come after the loads of what they overwrite
  std::uint64_t most = std::numeric_limits<std::uint64_t>::max();
  int count = 0;   // entries
  int newest = 0;  // place of the newest
  std::int32_t accesses = -1;
  Waiters waiters;
  std::array<WordEntry, kHistory> history;

  WordEntry& latest() { return history[newest]; }
  const WordEntry& latest() const { return history[newest]; }
  // The i-th oldest entry kept.
  const WordEntry& entry(int i) const {
    return history[(newest + kHistory - (count - 1) + i) % kHistory];
  }
};

// PTX ISA, "mbarrier". Copies are counted, not bytes.
struct Mbarrier {
  int threads = 0;  // arrivals per phase
  int pending = 0;
  int copies = 0;  // that the phase still waits for
  std::uint32_t completed = 0;
  Component copier = -1;  // of the loads that it counts
  Waiters waiters;
  std::int32_t watcher = -1;       // a thread that waits for this one or another
  Clock open_generic, open_async;  // of the phase that is filling
  Clock generic, async;            // of the phases that are complete

  bool passed(std::uint32_t parity) const { return ((completed ^ parity) & 1u) != 0; }
};

// "bar.sync id, count" of one block.
struct NamedBarrier {
  int expected = 0;  // of the threads that have arrived; 0 = nobody has
  int arrived = 0;
  std::uint32_t completed = 0;
  LabelId first = -1;
  bool open_vote = true, vote = true;  // __syncthreads_and
  Waiters waiters;
  Clock open_generic, open_async;
  Clock generic, async;
};

}  // namespace fusescope::protocol
