#pragma once
// A problem on the GPUs, end to end, in the order of what is built on what: tables, outputs, bits.

#include <vector>

#include "engine/cuda/devices.hpp"
#include "engine/engine.hpp"
#include "layer/check.hpp"

namespace fusescope::engine::cuda {

// bf16 through two GEMMs, an activation, a combine and a reduction lands near 4e-3.
inline constexpr double kMaxRelativeError = 6e-3;

// Of `request`: problem, config, seed, deadline. Checks that fail are results. Throws InputError for a
// config that cannot run.
std::vector<CheckResult> check_on_gpus(const std::vector<Device>& devices,
                                       const RunRequest& request);

}  // namespace fusescope::engine::cuda
