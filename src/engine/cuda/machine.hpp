#pragma once
// The GPUs of this machine, their links, and NCCL, as `list devices` tells them.

#include "engine/gpus.hpp"

namespace fusescope::engine::cuda {

// Never throws for want of a driver or a device.
Machine describe_machine();

}  // namespace fusescope::engine::cuda
