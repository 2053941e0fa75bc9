#pragma once
// A config back from the words that describe() made of it, as timelines carry them.

#include <string>

#include "layer/config.hpp"

namespace fusescope::cli {

// Throws InputError for words that this program's knobs do not know.
Config parse_config(const std::string& text);

}  // namespace fusescope::cli
