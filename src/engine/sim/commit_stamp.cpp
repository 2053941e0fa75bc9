#include "engine/sim/commit_stamp.hpp"

#include "fusescope_version.hpp"

namespace fusescope::engine::sim {

const char* commit_stamp() {
  return kFusescopeCommit;
}

}  // namespace fusescope::engine::sim
