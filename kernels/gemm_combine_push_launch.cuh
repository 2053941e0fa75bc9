#pragma once
// Host side of kernel 2, for the files that instantiate it: with records and without, one each.

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
                  kGemmThreads, shared_bytes(V), args.layer.launch, stream);
}

using GemmCombinePushLauncher = void (*)(const GemmCombinePushArgs&, int, cudaStream_t);

// Kernel 2 stores plain tiles: the other variants have no launcher.
template <int Index, class Records>
constexpr GemmCombinePushLauncher gemm_combine_push_launcher() {
  constexpr GemmVariant V = kGemmVariants[Index];
  if constexpr (V.epilogue == Epilogue::kStore && !V.gathers && !(Records::kOn && V.deferred)) {
    return &launch_gemm_combine_push_variant<Index, Records>;
  } else {
    return nullptr;
  }
}

template <class Records, int... Index>
constexpr auto gemm_combine_push_launchers(std::integer_sequence<int, Index...>) {
  return std::array<GemmCombinePushLauncher, sizeof...(Index)>{
      gemm_combine_push_launcher<Index, Records>()...};
}

template <class Records>
inline constexpr auto kGemmCombinePushLaunchers = gemm_combine_push_launchers<Records>(
    std::make_integer_sequence<int, static_cast<int>(kGemmVariants.size())>());

template <class Records>
__global__ void __launch_bounds__(kJobThreads, Records::kOn ? 3 : 0)
    block_per_job_kernel(const __grid_constant__ GemmCombinePushArgs args) {
  extern __shared__ __align__(128) unsigned char smem[];
  const int job = static_cast<int>(blockIdx.x);
  JobRunner<Records>(args.layer, args.combine, smem, kFirstJobBarrier,
                     {Family::combine_jobs, job, 0})
      .run_one(job);
}

template <class Records>
void launch_block_per_job_form(const GemmCombinePushArgs& args, cudaStream_t branch) {
  const auto bytes =
      static_cast<int>(job_group_bytes(args.layer.hidden, args.layer.topk, args.combine.ring));
  FUSESCOPE_CUDA(cudaFuncSetAttribute(block_per_job_kernel<Records>,
                                      cudaFuncAttributeMaxDynamicSharedMemorySize, bytes));
  block_per_job_kernel<Records><<<args.layer.tokens, kJobThreads, bytes, branch>>>(args);
  FUSESCOPE_CUDA(cudaGetLastError());
}

// In gemm_combine_push_recorded.cu.
GemmCombinePushLauncher recorded_gemm_combine_push_launcher(int variant);
void launch_recorded_block_per_job(const GemmCombinePushArgs& args, cudaStream_t branch);

}  // namespace fusescope::kernels
