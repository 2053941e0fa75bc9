// Alone in its file: it is compiled anew with every commit.
#include "base/version.hpp"

#include "fusescope_version.hpp"

namespace fusescope {

std::string version() {
  return kFusescopeVersion;
}

std::string commit() {
  return kFusescopeCommit;
}

std::string version_line() {
  return "fusescope " + version() + " (" + commit() + ")";
}

}  // namespace fusescope
