// Kernel 1 with the transposed GEMMs that gather their rows, without records and with.
#include "kernels/dispatch_gemm_launch.cuh"

namespace fusescope::kernels {

DispatchGemmLauncher gathering_transposed_dispatch_gemm_launcher(int variant, bool recorded) {
  const auto index = static_cast<std::size_t>(variant);
  return recorded ? kDispatchGemmLaunchers<Recording, DispatchGemms::gathering_transposed>.at(index)
                  : kDispatchGemmLaunchers<Silent, DispatchGemms::gathering_transposed>.at(index);
}

}  // namespace fusescope::kernels
