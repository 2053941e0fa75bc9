#pragma once
// The JSON files of analysis/trace/rules, embedded at build time.

#include <span>
#include <string_view>
#include <utility>

namespace fusescope::analysis {

std::span<const std::pair<std::string_view, std::string_view>> rules_data();  // name, text

}  // namespace fusescope::analysis
