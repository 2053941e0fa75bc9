#include "gemm_kernel.cuh"

namespace fusescope::kernels {

template cudaError_t
launch_grouped_gemm_variant<variant_index(transposed({128, 64, 4, Epilogue::kStore}))>(
    const GroupedGemmArgs&, int, cudaStream_t);

}  // namespace fusescope::kernels
