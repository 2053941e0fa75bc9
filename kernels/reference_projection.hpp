#pragma once
// The third kernel's result again, naively, to check the real one against: one dot product per warp in
// fp32, no intermediate rounding, nothing shared with the kernels that it checks. Random inputs and the
// comparison are reference_layer's.

#include <cuda_runtime_api.h>

#include <cstdint>

#include "kernels/layer_args.hpp"

namespace fusescope::kernels {

// part [rows, columns] fp32 = x [rows, depth] * weights [columns, depth]^T. `depth`: at most 48 Ki.
void launch_reference_projection(const Bf16* x, const Bf16* weights, float* part, int rows,
                                 int columns, int depth, cudaStream_t stream);

}  // namespace fusescope::kernels
