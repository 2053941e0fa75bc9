#include "cli/run_config_text.hpp"

#include <sstream>

namespace fusescope::cli {

Config parse_config(const std::string& text) {
  Config config;
  if (text == describe(config)) {
    return config;  // words for "nothing differs"
  }
  std::istringstream words(text);
  for (std::string word; words >> word;) {
    set_knob_text(config, word, "timeline");
  }
  return config;
}

}  // namespace fusescope::cli
