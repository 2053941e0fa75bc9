#pragma once
// Host side of kernel 1, for the files that instantiate it: with records and without, one each, and one each of
// the variants that gather, and of the transposed ones.

#include <algorithm>
#include <array>
#include <utility>

#include "kernels/dispatch_gemm.cuh"
#include "kernels/resident_launch.hpp"

namespace fusescope::kernels {

template <int Index, class Records>
void launch_dispatch_gemm_variant(const DispatchGemmArgs& args, int blocks, cudaStream_t stream) {
  constexpr GemmVariant V = kGemmVariants[Index];
  const auto communication =
      static_cast<int>(communication_bytes(args.tokens_per_block, args.layer.hidden));
  launch_resident(dispatch_gemm_kernel<Index, Records>, "dispatch_gemm", args, blocks,
                  gemm_threads(V), std::max(shared_bytes(V), communication), args.layer.launch,
                  stream);
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

// By the file that instantiates them.
enum class DispatchGemms { plain, gathering, transposed, gathering_transposed };
constexpr DispatchGemms kind_of(const GemmVariant& v) {
  if (v.transposed)
    return v.gathers ? DispatchGemms::gathering_transposed : DispatchGemms::transposed;
  return v.gathers ? DispatchGemms::gathering : DispatchGemms::plain;
}

// Null where no kernel is built: nobody runs one that records with output written under the next tile, for
// its gates would wait for signals of the same block.
template <int Index, class Records, DispatchGemms Kind>
constexpr DispatchGemmLauncher dispatch_gemm_launcher() {
  constexpr GemmVariant V = kGemmVariants[Index];
  if constexpr (kind_of(V) == Kind && !(Records::kOn && V.deferred)) {
    return &launch_dispatch_gemm_variant<Index, Records>;
  } else {
    return nullptr;
  }
}

template <class Records, DispatchGemms Kind, int... Index>
constexpr auto dispatch_gemm_launchers(std::integer_sequence<int, Index...>) {
  return std::array<DispatchGemmLauncher, sizeof...(Index)>{
      dispatch_gemm_launcher<Index, Records, Kind>()...};
}

// By the variant's index.
template <class Records, DispatchGemms Kind>
inline constexpr auto kDispatchGemmLaunchers = dispatch_gemm_launchers<Records, Kind>(
    std::make_integer_sequence<int, static_cast<int>(kGemmVariants.size())>());

// In dispatch_gemm_recorded.cu, dispatch_gemm_gather.cu, dispatch_gemm_transposed.cu and
// dispatch_gemm_gather_transposed.cu.
DispatchGemmLauncher recorded_dispatch_gemm_launcher(int variant);
DispatchGemmLauncher gathering_dispatch_gemm_launcher(int variant, bool recorded);
DispatchGemmLauncher transposed_dispatch_gemm_launcher(int variant, bool recorded);
DispatchGemmLauncher gathering_transposed_dispatch_gemm_launcher(int variant, bool recorded);

}  // namespace fusescope::kernels
