// Kernel 1 with records: a file of its own, because it takes as long to compile as the one without.
#include "kernels/dispatch_gemm_launch.cuh"

namespace fusescope::kernels {
namespace {

// Nobody runs kernel 1 with output written under the next tile: its gates would wait for signals of the
// same block.
template <int Index>
constexpr DispatchGemmLauncher recorded_launcher() {
  if constexpr (kGemmVariants[Index].deferred) {
    return nullptr;
  } else {
    return &launch_dispatch_gemm_variant<Index, Recording>;
  }
}

template <int... Index>
constexpr auto recorded_launchers(std::integer_sequence<int, Index...>) {
  return std::array<DispatchGemmLauncher, sizeof...(Index)>{recorded_launcher<Index>()...};
}

constexpr auto kLaunchers =
    recorded_launchers(std::make_integer_sequence<int, static_cast<int>(kGemmVariants.size())>());

}  // namespace

void launch_recorded_dispatch_gemm(const DispatchGemmArgs& args, int variant, int blocks,
                                   cudaStream_t stream) {
  const DispatchGemmLauncher launcher = kLaunchers.at(static_cast<std::size_t>(variant));
  if (launcher == nullptr)
    throw std::invalid_argument("dispatch_gemm: no kernel that records was built for " +
                                to_string(kGemmVariants[static_cast<std::size_t>(variant)]));
  launcher(args, blocks, stream);
}

}  // namespace fusescope::kernels
