#pragma once
// Faults that a sweep is told to inject, to see that it survives them: an engine that misbehaves at
// chosen configs and is the given engine at all others. Its identity says so, so that its log is no
// other sweep's.

#include <memory>
#include <string>
#include <vector>

#include "engine/engine.hpp"
#include "sweep/constraint.hpp"

namespace fusescope::sweep {

enum class FaultKind {
  hang,          // never returns
  stop,          // the whole process stops, heartbeat included
  segfault,      // SIGSEGV
  exit,          // the process ends, exit code 3
  memory,        // allocates until its limit, 256 MiB more than it has
  wrong_output,  // the check of the outputs fails
  launch,        // a launch fails
};

struct Fault {
  FaultKind kind = FaultKind::hang;
  Constraint where;  // at which configs
};

// "hang: dispatch_comm_sms == 8". Throws InputError naming `option`.
Fault parse_fault(const std::string& text, const std::string& option);

std::unique_ptr<engine::Engine> make_faulty(std::unique_ptr<engine::Engine> engine,
                                            std::vector<Fault> faults);

}  // namespace fusescope::sweep
