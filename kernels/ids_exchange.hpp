#pragma once
// Ids exchange: every rank stores its tokens' expert ids and weights into every rank's table by peer
// stores, then raises its flag there; then waits for all flags. One block per rank.

#include <cuda_runtime_api.h>

#include "kernels/device_barrier.hpp"
#include "kernels/layer_args.hpp"

namespace fusescope::kernels {

void launch_ids_exchange(const LayerArgs& layer, Part part, cudaStream_t stream);

// Everybody's ids as this exchange leaves them, from those that a prologue left (Shared::stamped_ids).
void launch_unstamp_ids(const LayerArgs& layer, cudaStream_t stream);

}  // namespace fusescope::kernels
