// Kernel 1 with records: a file of its own, because it takes as long to compile as the one without.
#include "kernels/dispatch_gemm_launch.cuh"

namespace fusescope::kernels {

DispatchGemmLauncher recorded_dispatch_gemm_launcher(int variant) {
  return kDispatchGemmLaunchers<Recording, DispatchGemms::plain>.at(
      static_cast<std::size_t>(variant));
}

}  // namespace fusescope::kernels
