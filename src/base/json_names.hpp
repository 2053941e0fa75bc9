#pragma once
// A folder of JSON files that are asked for by name.

#include <string>
#include <vector>

namespace fusescope {

// "seed-tp4" for seed-tp4.json, sorted; none where there is no such folder.
std::vector<std::string> json_names(const std::string& folder);

}  // namespace fusescope
