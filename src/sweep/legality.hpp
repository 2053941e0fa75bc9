#pragma once
// The check of a whole sweep against a device, before anything is run or written.

#include "sweep/sweep_config.hpp"

namespace fusescope::sweep {

// Throws InputError, naming the place in the sweep's file, when the base config cannot run on the
// device, when the constraints exclude every config, or when no config that they leave can run. A
// config that alone cannot run is no error of the sweep: it becomes a trial with the verdict
// `illegal`.
void require_legal(const SweepConfig& config, const Problem& problem, const DeviceLimits& device);

}  // namespace fusescope::sweep
