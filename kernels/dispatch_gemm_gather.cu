// Kernel 1 where the GEMM gathers its rows, without records and with.
#include "kernels/dispatch_gemm_launch.cuh"

namespace fusescope::kernels {

DispatchGemmLauncher gathering_dispatch_gemm_launcher(int variant, bool recorded) {
  const auto index = static_cast<std::size_t>(variant);
  return recorded ? kDispatchGemmLaunchers<Recording, DispatchGemms::gathering>.at(index)
                  : kDispatchGemmLaunchers<Silent, DispatchGemms::gathering>.at(index);
}

}  // namespace fusescope::kernels
