#pragma once
// When the devices arrive at the same collective: waiting for the slowest rank against transfer.

#include <span>
#include <vector>

#include "analysis/trace/attribution.hpp"
#include "analysis/trace/select.hpp"

namespace fusescope::analysis {

// `slices` per trace, as select_slices() gives them. A kernel that some device launched more often than
// another is left out: its launches cannot be told apart.
std::vector<SkewRow> find_skew(std::span<const timeline::Trace> traces,
                               std::span<const std::vector<DeviceSlices>> slices);

}  // namespace fusescope::analysis
