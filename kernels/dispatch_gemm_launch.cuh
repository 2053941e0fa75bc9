#pragma once
// Host side of kernel 1, for the files that instantiate it: with records and without, one each.

#include <algorithm>
#include <array>
#include <utility>

#include "kernels/cooperative_launch.hpp"
#include "kernels/dispatch_gemm.cuh"

namespace fusescope::kernels {

template <int Index, class Records>
void launch_dispatch_gemm_variant(const DispatchGemmArgs& args, int blocks, cudaStream_t stream) {
  constexpr GemmVariant V = kGemmVariants[Index];
  const auto communication =
      static_cast<int>(communication_bytes(args.tokens_per_block, args.layer.hidden));
  launch_cooperative(dispatch_gemm_kernel<Index, Records>, "dispatch_gemm", args, blocks,
                     gemm_threads(V), std::max(shared_bytes(V), communication), stream);
}

using DispatchGemmLaunch = void(const DispatchGemmArgs&, int, cudaStream_t);

// Those of the mma.sync mainloop: in dispatch_gemm_mma.cu, which is compiled for more GPUs.
extern template DispatchGemmLaunch launch_dispatch_gemm_variant<kFirstMmaVariant, Silent>;
extern template DispatchGemmLaunch launch_dispatch_gemm_variant<kFirstMmaVariant + 1, Silent>;
extern template DispatchGemmLaunch launch_dispatch_gemm_variant<kFirstMmaVariant + 2, Silent>;
extern template DispatchGemmLaunch launch_dispatch_gemm_variant<kFirstMmaVariant + 3, Silent>;
extern template DispatchGemmLaunch launch_dispatch_gemm_variant<kFirstMmaVariant, Recording>;
extern template DispatchGemmLaunch launch_dispatch_gemm_variant<kFirstMmaVariant + 1, Recording>;
extern template DispatchGemmLaunch launch_dispatch_gemm_variant<kFirstMmaVariant + 2, Recording>;
extern template DispatchGemmLaunch launch_dispatch_gemm_variant<kFirstMmaVariant + 3, Recording>;

using DispatchGemmLauncher = DispatchGemmLaunch*;

// One launcher per variant, by its index.
template <class Records, int... Index>
constexpr auto dispatch_gemm_launchers(std::integer_sequence<int, Index...>) {
  return std::array<DispatchGemmLauncher, sizeof...(Index)>{
      &launch_dispatch_gemm_variant<Index, Records>...};
}

// In dispatch_gemm_recorded.cu.
void launch_recorded_dispatch_gemm(const DispatchGemmArgs& args, int variant, int blocks,
                                   cudaStream_t stream);

}  // namespace fusescope::kernels
