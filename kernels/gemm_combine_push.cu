#include "kernels/gemm_combine_push.cuh"

#include <algorithm>
#include <array>
#include <utility>

#include "kernels/cooperative_launch.hpp"
#include "kernels/gemm/gemm_launch.hpp"

namespace fusescope::kernels {
namespace {

template <int Index>
void launch(const GemmCombinePushArgs& args, int blocks, cudaStream_t stream) {
  constexpr GemmVariant V = kGemmVariants[Index];
  // Jobs of compute blocks reuse the ring and the staging chunks; the control area behind them stays.
  constexpr int kReusable = ring_bytes(V) + staged_bytes();
  if (args.runs_jobs && job_bytes(args.layer.hidden) > kReusable) {
    throw std::invalid_argument(
        "gemm_combine_push: hidden size " + std::to_string(args.layer.hidden) + " needs " +
        std::to_string(job_bytes(args.layer.hidden)) +
        " bytes of shared memory for jobs, the GEMM leaves " + std::to_string(kReusable));
  }
  launch_cooperative(gemm_combine_push_kernel<Index, NoProbe>, "gemm_combine_push", args, blocks,
                     kGemmThreads, shared_bytes(V), stream);
}

using Launcher = void (*)(const GemmCombinePushArgs&, int, cudaStream_t);

// Kernel 2 stores plain tiles: the other variants have no launcher.
template <int Index>
constexpr Launcher launcher() {
  if constexpr (kGemmVariants[Index].epilogue == Epilogue::kStore) {
    return &launch<Index>;
  } else {
    return nullptr;
  }
}

template <int... Index>
constexpr auto make_launchers(std::integer_sequence<int, Index...>) {
  return std::array<Launcher, sizeof...(Index)>{launcher<Index>()...};
}

constexpr auto kLaunchers =
    make_launchers(std::make_integer_sequence<int, static_cast<int>(kGemmVariants.size())>());

__global__ void wait_for_residency_kernel(const __grid_constant__ GemmCombinePushArgs args) {
  wait_for_counter(args.layer.guard, Wait::residency, args.compute_blocks,
                   args.layer.counters->resident, static_cast<std::uint32_t>(args.compute_blocks));
}

__global__ void __launch_bounds__(kJobThreads)
    block_per_job_kernel(const __grid_constant__ GemmCombinePushArgs args) {
  extern __shared__ __align__(128) unsigned char row[];
  __shared__ std::int32_t mailbox;
  JobRunner(args.layer, args.combine, row, &mailbox, kFirstJobBarrier)
      .run_one(job_token(args.layer, static_cast<int>(blockIdx.x)));
}

}  // namespace

long long job_bytes(int hidden) {
  return kJobGroups * (kJobBuffers * 2LL * hidden + static_cast<long long>(sizeof(std::int32_t)));
}

void launch_gemm_combine_push(const GemmCombinePushArgs& args, const GemmVariant& variant,
                              int blocks, cudaStream_t stream) {
  const Launcher launcher = kLaunchers.at(static_cast<std::size_t>(variant_index(variant)));
  if (launcher == nullptr)
    throw std::invalid_argument("gemm_combine_push: " + to_string(variant) +
                                " fuses an activation");
  launcher(args, blocks, stream);
}

void launch_wait_for_residency(const GemmCombinePushArgs& args, cudaStream_t branch) {
  wait_for_residency_kernel<<<1, 1, 0, branch>>>(args);
  FUSESCOPE_CUDA(cudaGetLastError());
}

void launch_block_per_job(const GemmCombinePushArgs& args, cudaStream_t branch) {
  const int bytes = 2 * args.layer.hidden;  // one job, one buffer
  FUSESCOPE_CUDA(cudaFuncSetAttribute(block_per_job_kernel,
                                      cudaFuncAttributeMaxDynamicSharedMemorySize, bytes));
  block_per_job_kernel<<<args.layer.tokens, kJobThreads, bytes, branch>>>(args);
  FUSESCOPE_CUDA(cudaGetLastError());
}

}  // namespace fusescope::kernels
