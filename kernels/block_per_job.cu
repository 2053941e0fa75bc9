// Kernel 2's jobs as short-lived blocks beside its GEMM, and the wait for that GEMM's blocks.
#include "kernels/combine_job.cuh"
#include "kernels/cuda_check.hpp"
#include "kernels/gemm_combine_push.hpp"

namespace fusescope::kernels {
namespace {

__global__ void wait_for_residency_kernel(const __grid_constant__ GemmCombinePushArgs args) {
  wait_for_counter(args.layer.guard, Wait::residency, args.compute_blocks,
                   args.layer.counters->resident, static_cast<std::uint32_t>(args.compute_blocks));
}

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

}  // namespace

void launch_wait_for_residency(const GemmCombinePushArgs& args, cudaStream_t branch) {
  wait_for_residency_kernel<<<1, 1, 0, branch>>>(args);
  FUSESCOPE_CUDA(cudaGetLastError());
}

void launch_block_per_job(const GemmCombinePushArgs& args, cudaStream_t branch) {
  if (args.layer.is_recorded()) {
    launch_block_per_job_form<Recording>(args, branch);
  } else {
    launch_block_per_job_form<Silent>(args, branch);
  }
}

}  // namespace fusescope::kernels
