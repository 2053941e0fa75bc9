#include "kernels/gemm_combine_push_launch.cuh"

namespace fusescope::kernels {
namespace {

__global__ void wait_for_residency_kernel(const __grid_constant__ GemmCombinePushArgs args) {
  wait_for_counter(args.layer.guard, Wait::residency, args.compute_blocks,
                   args.layer.counters->resident, static_cast<std::uint32_t>(args.compute_blocks));
}

}  // namespace

void launch_gemm_combine_push(const GemmCombinePushArgs& args, const GemmVariant& variant,
                              int blocks, cudaStream_t stream) {
  const int index = variant_index(variant);
  const GemmCombinePushLauncher launcher =
      args.layer.is_recorded()
          ? recorded_gemm_combine_push_launcher(index)
          : kGemmCombinePushLaunchers<Silent>.at(static_cast<std::size_t>(index));
  if (launcher == nullptr)
    throw std::invalid_argument("gemm_combine_push: no kernel" +
                                std::string(args.layer.is_recorded() ? " that records" : "") +
                                " was built for " + to_string(variant));
  launcher(args, blocks, stream);
}

void launch_wait_for_residency(const GemmCombinePushArgs& args, cudaStream_t branch) {
  wait_for_residency_kernel<<<1, 1, 0, branch>>>(args);
  FUSESCOPE_CUDA(cudaGetLastError());
}

void launch_block_per_job(const GemmCombinePushArgs& args, cudaStream_t branch) {
  if (args.layer.is_recorded()) {
    launch_recorded_block_per_job(args, branch);
  } else {
    launch_block_per_job_form<Silent>(args, branch);
  }
}

}  // namespace fusescope::kernels
