#pragma once
// Ctrl-C as a flag that work looks at between two steps.

#include <atomic>

namespace fusescope::cli {

// While it lives, the first SIGINT (or SIGTERM) sets the flag; the second ends the process as if nothing
// had been caught. One at a time.
class InterruptFlag {
 public:
  InterruptFlag();
  ~InterruptFlag();
  InterruptFlag(const InterruptFlag&) = delete;
  InterruptFlag& operator=(const InterruptFlag&) = delete;

  static const std::atomic<bool>& raised();
};

}  // namespace fusescope::cli
