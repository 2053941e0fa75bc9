// Kernel 2 with the transposed GEMMs, without records and with.
#include "kernels/gemm_combine_push_launch.cuh"

namespace fusescope::kernels {

GemmCombinePushLauncher transposed_gemm_combine_push_launcher(int variant, bool recorded) {
  const auto index = static_cast<std::size_t>(variant);
  return recorded ? kGemmCombinePushLaunchers<Recording, true>.at(index)
                  : kGemmCombinePushLaunchers<Silent, true>.at(index);
}

}  // namespace fusescope::kernels
