#include "gemm_kernel.cuh"

namespace fusescope::kernels {

template cudaError_t launch_grouped_gemm_variant<variant_index(leaving_room(
    transposed({128, 64, 4, Epilogue::kSiluMul})))>(const GroupedGemmArgs&, int, cudaStream_t);

}  // namespace fusescope::kernels
