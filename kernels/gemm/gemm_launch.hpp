// The grouped GEMM as a kernel of its own (the serial layer's form), and the registry of variants.
#pragma once

#include <cuda_runtime_api.h>

#include "gemm_args.hpp"
#include "gemm_variants.hpp"

namespace fusescope::kernels {

// Enqueues one launch of `workers` persistent blocks (at most one per SM is useful; more still give
// the same result). Throws std::invalid_argument for a variant that is not in kGemmVariants, and
// std::runtime_error if the launch fails. `args` must come from make_grouped_gemm_args with the
// same variant. Capturable.
void launch_grouped_gemm(const GroupedGemmArgs& args, const GemmVariant& variant, int workers,
                         cudaStream_t stream);

// The variant that costs the fewest tile columns for this N, the wider tile where they tie.
GemmVariant choose_gemm_variant(std::int64_t n, Epilogue epilogue);

// One per entry of kGemmVariants, each defined in its own gemm_*.cu.
template <int Index>
cudaError_t launch_grouped_gemm_variant(const GroupedGemmArgs& args, int workers,
                                        cudaStream_t stream);

}  // namespace fusescope::kernels
