#pragma once
// Everything about a problem that can be checked without a GPU, in one call: what `fusescope check` runs.

#include <string>
#include <vector>

#include "layer/config.hpp"
#include "layer/problem.hpp"

namespace fusescope {

struct CheckResult {
  std::string name;  // "tables, slot_order by_token"
  bool passed = false;
  std::string detail;  // what was compared, or the first fault
  double seconds = 0;
};

// Tables of every rank and slot order (golden = Thrust C++ = Thrust OpenMP, and the invariants), then the
// dataflow of every slot order with the config's other knobs. Checks that fail are results, not
// exceptions; an impossible watermark_chunks is an InputError.
std::vector<CheckResult> check_layer(const Problem& problem, const Config& config);

}  // namespace fusescope
