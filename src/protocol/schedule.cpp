#include "protocol/schedule.hpp"

#include <fmt/format.h>

#include <charconv>
#include <limits>
#include <sstream>

#include "base/error.hpp"
#include "protocol/layer/layer.hpp"

namespace fusescope::protocol {
namespace {

std::string printed(const Choices& choices) {
  std::string text;
  for (std::size_t i = 0; i < choices.size();) {
    std::size_t end = i;
    while (end < choices.size() && choices[end] == choices[i]) {
      ++end;
    }
    text += text.empty() ? "" : ",";
    text +=
        end - i == 1 ? fmt::format("{}", choices[i]) : fmt::format("{}*{}", choices[i], end - i);
    i = end;
  }
  return text;
}

Choices parse_choices(const std::string& text, const std::string& option) {
  constexpr std::size_t kMost = 1'000'000;
  Choices choices;
  std::istringstream parts(text);
  for (std::string part; std::getline(parts, part, ',');) {
    std::uint16_t value = 0;
    std::size_t count = 1;
    const char* end = part.data() + part.size();
    auto parsed = std::from_chars(part.data(), end, value);
    if (parsed.ec == std::errc{} && parsed.ptr != end && *parsed.ptr == '*') {
      parsed = std::from_chars(parsed.ptr + 1, end, count);
    }
    if (parsed.ec != std::errc{} || parsed.ptr != end || count > kMost - choices.size()) {
      throw InputError({option, "choices", fmt::format("\"{}\" is not a choice", part),
                        "numbers and runs of them, such as 0*12,3,0*4,7"});
    }
    choices.insert(choices.end(), count, value);
  }
  return choices;
}

}  // namespace

Outcome run_schedule(Machine& machine, const Scenario& scenario, Bug bug, Chooser& chooser,
                     std::vector<std::string>* trace) {
  Layer layer(machine, scenario, bug);
  return run_model(machine, layer, chooser, trace);
}

Outcome replay(Machine& machine, const Schedule& schedule, std::vector<std::string>* trace) {
  ReplayChooser chooser(schedule.choices);
  return run_schedule(machine, schedule.scenario, schedule.bug, chooser, trace);
}

std::string to_string(const Schedule& schedule) {
  return fmt::format("{} bug={} choices={}", to_string(schedule.scenario), name(schedule.bug),
                     printed(schedule.choices));
}

Schedule parse_schedule(const std::string& text, const std::string& option) {
  Schedule schedule;
  std::string scenario;
  std::istringstream words(text);
  for (std::string word; words >> word;) {
    if (word.starts_with("bug=")) {
      schedule.bug = parse_bug(word.substr(4), option);
    } else if (word.starts_with("choices=")) {
      schedule.choices = parse_choices(word.substr(8), option);
    } else {
      scenario += word + " ";
    }
  }
  schedule.scenario = parse_scenario(scenario, option);
  return schedule;
}

}  // namespace fusescope::protocol
