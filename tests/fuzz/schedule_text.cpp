#include <string>

#include "base/error.hpp"
#include "protocol/schedule.hpp"
#include "targets.hpp"

namespace fusescope::fuzz {
namespace {

bool is_small(const protocol::Scenario& s) {
  return s.ranks <= 3 && s.tokens() <= 6 && s.experts <= 4 && s.sms <= 3 && s.iterations <= 2;
}

}  // namespace

bool schedule_text(std::string_view input) {
  try {
    const protocol::Schedule schedule = protocol::parse_schedule(std::string(input), "--replay");
    const std::string text = to_string(schedule);
    const protocol::Schedule again = protocol::parse_schedule(text, "--replay");
    require(to_string(again) == text && again.choices == schedule.choices &&
                again.scenario == schedule.scenario && again.bug == schedule.bug,
            "a schedule survives its text");
    if (is_small(schedule.scenario)) {
      protocol::Machine machine;
      const protocol::Outcome outcome = replay(machine, schedule);
      require(schedule.bug != protocol::Bug::none || !outcome.finding,
              "the protocol holds under every schedule");
    }
    return true;
  } catch (const InputError&) {
    return false;
  }
}

}  // namespace fusescope::fuzz
