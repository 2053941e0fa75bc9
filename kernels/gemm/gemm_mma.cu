// The plain kernels of the mma.sync mainloop, in one file: most of the time is the headers'.
#include "gemm_kernel.cuh"

namespace fusescope::kernels {

using Launcher = cudaError_t(const GroupedGemmArgs&, int, cudaStream_t);
template Launcher launch_grouped_gemm_variant<kFirstMmaVariant>;
template Launcher launch_grouped_gemm_variant<kFirstMmaVariant + 1>;
template Launcher launch_grouped_gemm_variant<kFirstMmaVariant + 2>;
template Launcher launch_grouped_gemm_variant<kFirstMmaVariant + 3>;
static_assert(kFirstMmaVariant + 4 == kGemmVariants.size());

}  // namespace fusescope::kernels
