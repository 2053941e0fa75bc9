#pragma once
// silu(gate) * up as a kernel of its own: gate_up [rows, 2I] -> act [rows, I], for the rows that this
// routing uses (read from expert_rows on the device).

#include <cuda_runtime_api.h>

#include "kernels/layer_args.hpp"

namespace fusescope::kernels {

void launch_activation(const LayerArgs& layer, cudaStream_t stream);

}  // namespace fusescope::kernels
