#pragma once
// The seam between the machine and a search: who runs next.

#include <cstdint>

#include "protocol/names.hpp"

namespace fusescope::protocol {

// Something that could happen next: a thread's next step, a bulk copy's, or a wait that runs out of time.
struct Candidate {
  const Label* label;
  std::int16_t from_rank;  // bulk copies: the link they use; else the thread's rank, twice
  std::int16_t to_rank;
  std::uint32_t id;  // the same for all steps of one thread, or of one copy
  bool times_out;
};

class Candidates {
 public:
  virtual ~Candidates() = default;
  virtual int size() const = 0;       // first the steps, then the waits that may run out of time
  virtual int steps() const = 0;      // how many are steps
  virtual int preferred() const = 0;  // the thread that ran last, if it can go on; else the first
  virtual Candidate at(int index) const = 0;
};

class Chooser {
 public:
  virtual ~Chooser() = default;
  // An index below candidates.size(). Where there are steps and the answer is not one of them, a wait
  // gives up although it could have gone on: only runs with a fault offer that.
  virtual int choose(const Candidates& candidates) = 0;
  // Which of `count` values a relaxed load returns; count - 1 is the newest.
  virtual int choose_value(int count) = 0;
};

}  // namespace fusescope::protocol
