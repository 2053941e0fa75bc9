#include "base/json_names.hpp"

#include <algorithm>
#include <filesystem>
#include <system_error>

namespace fusescope {

namespace fs = std::filesystem;

std::vector<std::string> json_names(const std::string& folder) {
  std::vector<std::string> names;
  std::error_code none;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, none)) {
    if (entry.path().extension() == ".json") {
      names.push_back(entry.path().stem().string());
    }
  }
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace fusescope
