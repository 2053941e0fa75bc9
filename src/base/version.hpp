#pragma once
// What this program is: every result is stamped with it.

#include <string>

namespace fusescope {

std::string version();       // "0.1.0"
std::string commit();        // "1a2b3c4d5e6f", "-dirty" behind it if the tree had changes
std::string version_line();  // "fusescope 0.1.0 (1a2b3c4d5e6f)"

}  // namespace fusescope
