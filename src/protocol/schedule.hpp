#pragma once
// One schedule: a scenario, a planted bug or none, and the choices that order its steps. Runs, prints and
// reads back.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "protocol/bugs.hpp"
#include "protocol/finding.hpp"
#include "protocol/model.hpp"
#include "protocol/scenario.hpp"
#include "protocol/strategy.hpp"

namespace fusescope::protocol {

struct Schedule {
  Scenario scenario;
  Bug bug = Bug::none;
  Choices choices;
};

// Runs the scenario under the chooser; after a fault, the launch that follows it too. `trace`: null, or
// where every step is written down: number, thread, operation, place.
Outcome run_schedule(Machine& machine, const Scenario& scenario, Bug bug, Chooser& chooser,
                     std::vector<std::string>* trace = nullptr);
Outcome replay(Machine& machine, const Schedule& schedule,
               std::vector<std::string>* trace = nullptr);

// "ranks=2 ... bug=two_elected choices=0*12,3,0*4,7"
std::string to_string(const Schedule& schedule);
Schedule parse_schedule(const std::string& text, const std::string& option);

}  // namespace fusescope::protocol
