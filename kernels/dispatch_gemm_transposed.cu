// Kernel 1 with the transposed GEMMs, without records and with.
#include "kernels/dispatch_gemm_launch.cuh"

namespace fusescope::kernels {

DispatchGemmLauncher transposed_dispatch_gemm_launcher(int variant, bool recorded) {
  const auto index = static_cast<std::size_t>(variant);
  return recorded ? kDispatchGemmLaunchers<Recording, DispatchGemms::transposed>.at(index)
                  : kDispatchGemmLaunchers<Silent, DispatchGemms::transposed>.at(index);
}

}  // namespace fusescope::kernels
