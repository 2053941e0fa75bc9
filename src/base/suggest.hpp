#pragma once
// "Did you mean": the known name nearest to a mistyped one.

#include <string>
#include <string_view>
#include <vector>

namespace fusescope {

// The nearest of `known` by edit distance, or "" when nothing is near enough to be meant.
std::string nearest_name(std::string_view given, const std::vector<std::string>& known);

// "a, b or c"
std::string spoken_list(const std::vector<std::string>& names);

}  // namespace fusescope
