#include "cli/version.hpp"

#include "fusescope_version.hpp"

namespace fusescope::cli {

std::string version() {
  return kFusescopeVersion;
}

std::string commit() {
  return kFusescopeCommit;
}

std::string version_line() {
  return "fusescope " + version() + " (" + commit() + ")";
}

}  // namespace fusescope::cli
