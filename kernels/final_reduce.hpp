#pragma once
// Last step on the source rank: sums the R staging planes in rank order, in fp32, into the output.
// Waits for each sender's watermark, chunk by chunk; the serial layer's form finds complete planes
// and waits for nothing.

#include <cuda_runtime_api.h>

#include "kernels/layer_args.hpp"

namespace fusescope::kernels {

struct FinalReduceArgs {
  LayerArgs layer;
  std::int32_t watermark_chunks = 1;
  bool waits = true;
};

// Blocks of its launch; for who records.
int final_reduce_blocks(int tokens_per_rank);

void launch_final_reduce(const FinalReduceArgs& args, cudaStream_t stream);

}  // namespace fusescope::kernels
