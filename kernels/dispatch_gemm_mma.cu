// Kernel 1 around the mma.sync mainloop, without records and with.
#include "kernels/dispatch_gemm_launch.cuh"

namespace fusescope::kernels {

template DispatchGemmLaunch launch_dispatch_gemm_variant<kFirstMmaVariant, Silent>;
template DispatchGemmLaunch launch_dispatch_gemm_variant<kFirstMmaVariant + 1, Silent>;
template DispatchGemmLaunch launch_dispatch_gemm_variant<kFirstMmaVariant + 2, Silent>;
template DispatchGemmLaunch launch_dispatch_gemm_variant<kFirstMmaVariant + 3, Silent>;
template DispatchGemmLaunch launch_dispatch_gemm_variant<kFirstMmaVariant, Recording>;
template DispatchGemmLaunch launch_dispatch_gemm_variant<kFirstMmaVariant + 1, Recording>;
template DispatchGemmLaunch launch_dispatch_gemm_variant<kFirstMmaVariant + 2, Recording>;
template DispatchGemmLaunch launch_dispatch_gemm_variant<kFirstMmaVariant + 3, Recording>;
static_assert(kFirstMmaVariant + 4 == kGemmVariants.size());

}  // namespace fusescope::kernels
