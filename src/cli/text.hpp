#pragma once
// What the subcommands print for people.

#include <string>

#include "analysis/summary.hpp"

namespace fusescope::cli {

// Headline, steps of the critical path with their reasons, where the SMs' time went, how evenly the links
// were loaded, the longest waits at gates, caveats.
std::string attribution_text(const analysis::Attribution& attribution, std::size_t gates = 5);

// `text` broken at spaces; lines after the first begin with `indent` spaces.
std::string wrapped(const std::string& text, std::size_t indent, std::size_t width = 100);

}  // namespace fusescope::cli
