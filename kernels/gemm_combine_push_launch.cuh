#pragma once
// Host side of kernel 2, for the files that instantiate it: with records and without, one each, and one
// of the transposed GEMMs.

#include <array>
#include <string>
#include <utility>

#include "kernels/gemm_combine_push.cuh"
#include "kernels/resident_launch.hpp"

namespace fusescope::kernels {

template <int Index, class Records>
void launch_gemm_combine_push_variant(const GemmCombinePushArgs& args, int blocks,
                                      cudaStream_t stream) {
  constexpr GemmVariant V = kGemmVariants[Index];
  const JobRing& ring = args.combine.ring;
  if (args.runs_jobs && (ring.pieces < 1 || job_group_bytes(args.layer.hidden, args.layer.topk,
                                                            ring) > bytes_for_job_group(V))) {
    throw std::invalid_argument("gemm_combine_push: the jobs' ring does not fit what the GEMM's " +
                                to_string(V) + " leaves of shared memory");
  }
  launch_resident(gemm_combine_push_kernel<Index, Records>, "gemm_combine_push", args, blocks,
                  gemm_threads(V), shared_bytes(V), args.layer.launch, stream);
}

using GemmCombinePushLaunch = void(const GemmCombinePushArgs&, int, cudaStream_t);
using GemmCombinePushLauncher = GemmCombinePushLaunch*;

// Those of the mma.sync mainloop: in gemm_combine_push_mma.cu, which is compiled for more GPUs.
extern template GemmCombinePushLaunch launch_gemm_combine_push_variant<kFirstMmaVariant, Silent>;
extern template GemmCombinePushLaunch
    launch_gemm_combine_push_variant<kFirstMmaVariant + 2, Silent>;
extern template GemmCombinePushLaunch launch_gemm_combine_push_variant<kFirstMmaVariant, Recording>;
extern template GemmCombinePushLaunch
    launch_gemm_combine_push_variant<kFirstMmaVariant + 2, Recording>;

// Kernel 2 stores plain tiles: the other variants have no launcher.
template <int Index, class Records, bool Transposed>
constexpr GemmCombinePushLauncher gemm_combine_push_launcher() {
  constexpr GemmVariant V = kGemmVariants[Index];
  if constexpr (V.epilogue == Epilogue::kStore && !V.gathers && V.transposed == Transposed &&
                !(Records::kOn && V.deferred)) {
    return &launch_gemm_combine_push_variant<Index, Records>;
  } else {
    return nullptr;
  }
}

template <class Records, bool Transposed, int... Index>
constexpr auto gemm_combine_push_launchers(std::integer_sequence<int, Index...>) {
  return std::array<GemmCombinePushLauncher, sizeof...(Index)>{
      gemm_combine_push_launcher<Index, Records, Transposed>()...};
}

template <class Records, bool Transposed>
inline constexpr auto kGemmCombinePushLaunchers = gemm_combine_push_launchers<Records, Transposed>(
    std::make_integer_sequence<int, static_cast<int>(kGemmVariants.size())>());

// In gemm_combine_push_recorded.cu and gemm_combine_push_transposed.cu.
GemmCombinePushLauncher recorded_gemm_combine_push_launcher(int variant);
GemmCombinePushLauncher transposed_gemm_combine_push_launcher(int variant, bool recorded);

}  // namespace fusescope::kernels
