#pragma once
// Seeds a rank's counters for an iteration, from the tables just built: arrivals = slack, done = 0,
// dispenser, residency and push counts = 0; and counts the iteration. Everything that it writes was
// last used by kernels of the iteration before, on the same stream.

#include <cuda_runtime_api.h>

#include "kernels/layer_args.hpp"

namespace fusescope::kernels {

void launch_seed_counters(const LayerArgs& layer, cudaStream_t stream);

}  // namespace fusescope::kernels
