#include "protocol/finding.hpp"

namespace fusescope::protocol {

const char* to_string(FindingKind kind) {
  switch (kind) {
    case FindingKind::race:
      return "race";
    case FindingKind::stale:
      return "stale row";
    case FindingKind::deadlock:
      return "deadlock";
    case FindingKind::hang:
      return "hang after an abort";
    case FindingKind::claim:
      return "claim";
    case FindingKind::election:
      return "election";
    case FindingKind::overshoot:
      return "overshoot";
    case FindingKind::barrier:
      return "barrier misuse";
    case FindingKind::atomic:
      return "atomic across GPUs";
    case FindingKind::value:
      return "wrong value";
    case FindingKind::incomplete:
      return "incomplete";
  }
  return "?";
}

}  // namespace fusescope::protocol
