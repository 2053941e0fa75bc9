#pragma once
// What this program is. Alone in its file: it changes with every commit.

#include <string>

namespace fusescope::cli {

std::string version();       // "0.1.0"
std::string commit();        // "1a2b3c4d5e6f", "-dirty" behind it if the tree had changes
std::string version_line();  // "fusescope 0.1.0 (1a2b3c4d5e6f)"

}  // namespace fusescope::cli
