// Kernel 2 with records: a file of its own, because it takes as long to compile as the one without.
#include "kernels/gemm_combine_push_launch.cuh"

namespace fusescope::kernels {

GemmCombinePushLauncher recorded_gemm_combine_push_launcher(int variant) {
  return kGemmCombinePushLaunchers<Recording, false>.at(static_cast<std::size_t>(variant));
}

}  // namespace fusescope::kernels
