#include <charconv>

#include "base/error.hpp"
#include "engine/engine.hpp"

namespace fusescope::engine {

IterationChoice parse_iteration_choice(const std::string& text) {
  if (text == "median") {
    return {IterationChoice::Pick::median, 0};
  }
  if (text == "slowest") {
    return {IterationChoice::Pick::slowest, 0};
  }
  int number = -1;
  const char* const end = text.data() + text.size();
  const auto [stopped, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc{} || stopped != end || number < 0) {
    throw InputError({"", "--iteration", "\"" + text + "\" names no recorded iteration",
                      "median, slowest, or a number from 0"});
  }
  return {IterationChoice::Pick::number, number};
}

}  // namespace fusescope::engine
