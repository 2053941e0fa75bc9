#pragma once
// Makes a failing schedule small: first the scenario (fewer iterations, ranks, tokens, knobs back to their
// simplest), then the choices (as many as possible become "go on with the same thread").

#include <cstdint>

#include "protocol/schedule.hpp"

namespace fusescope::protocol {

struct Minimised {
  Schedule schedule;
  Finding finding;
  std::int64_t runs = 0;  // schedules that it took
};

// The schedule must fail when replayed. What comes back fails with a finding of the same kind. `effort`:
// schedules that a smaller scenario may take to fail before it is given up.
Minimised minimise(const Schedule& failing, const Finding& finding, int effort = 1000);

}  // namespace fusescope::protocol
