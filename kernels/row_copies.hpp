#pragma once
// Steps that only move or sum rows, as kernels of their own: copy-in for both forms of the layer;
// collecting rows from the peers, scatter and combine for the serial one.

#include <cuda_runtime_api.h>

#include "kernels/layer_args.hpp"

namespace fusescope::kernels {

// input [T, H] -> this rank's shared tokens.
void launch_copy_in(const LayerArgs& layer, cudaStream_t stream);

// What the serial layer collects from every other rank where NCCL does not: its tokens, into all_tokens
// (the all-gather); or the partial rows of this rank's tokens, into the staging planes (the exchange of
// the reduce-scatter). A kernel, and not cudaMemcpyAsync: with eight ranks on two GPUs a graph of such copies hung, one
// GPU's graph not begun while the other's waited for it, and with this kernel it does not.
enum class Collected { tokens, partials };
void launch_collect_rows(const LayerArgs& layer, Collected what, cudaStream_t stream);

// all_tokens [R*T, H] -> gathered rows, every token to its K slots.
void launch_scatter_rows(const LayerArgs& layer, cudaStream_t stream);

// partial rows -> every token's weighted sum, as a combine job computes it: into combined [R*T, H],
// or, for this rank's own tokens, into its own staging plane.
void launch_combine_rows(const LayerArgs& layer, cudaStream_t stream);

// Pacing of the serial layer's copies: lasts `ns`, or until the launch is aborted.
void launch_pace(const Guard& guard, double ns, cudaStream_t stream);

}  // namespace fusescope::kernels
