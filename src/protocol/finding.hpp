#pragma once
// What a search finds: the first step that breaks the protocol.

#include <cstdint>
#include <string>

namespace fusescope::protocol {

enum class FindingKind {
  race,        // two accesses, one of them a write, that nothing orders
  stale,       // a row is read that nobody has written, or that belongs to another iteration
  deadlock,    // nothing can go on
  hang,        // after an abort, something does not end
  claim,       // a job is claimed twice, or never
  election,    // not exactly one job is elected, or a watermark does not rise exactly once
  overshoot,   // a counter runs past its end, or does not reach it
  barrier,     // threads meet on one barrier with different counts
  atomic,      // an atomic reaches out of its GPU
  value,       // a sum differs from the reference
  incomplete,  // a block ends while its copies still read its shared memory; an error unreported
};

const char* to_string(FindingKind kind);

struct Finding {
  FindingKind kind = FindingKind::race;
  std::string what;
  std::uint64_t step = 0;  // of the schedule
};

}  // namespace fusescope::protocol
