// Kernel 2 around the mma.sync mainloop, without records and with.
#include "kernels/gemm_combine_push_launch.cuh"

namespace fusescope::kernels {

static_assert(kGemmVariants[kFirstMmaVariant].epilogue == Epilogue::kStore &&
              kGemmVariants[kFirstMmaVariant + 2].epilogue == Epilogue::kStore);
template GemmCombinePushLaunch launch_gemm_combine_push_variant<kFirstMmaVariant, Silent>;
template GemmCombinePushLaunch launch_gemm_combine_push_variant<kFirstMmaVariant + 2, Silent>;
template GemmCombinePushLaunch launch_gemm_combine_push_variant<kFirstMmaVariant, Recording>;
template GemmCombinePushLaunch launch_gemm_combine_push_variant<kFirstMmaVariant + 2, Recording>;

}  // namespace fusescope::kernels
