// Kernel 2 with records: a file of its own, because it takes as long to compile as the one without.
#include "kernels/gemm_combine_push_launch.cuh"

namespace fusescope::kernels {

GemmCombinePushLauncher recorded_gemm_combine_push_launcher(int variant) {
  return kGemmCombinePushLaunchers<Recording>.at(static_cast<std::size_t>(variant));
}

void launch_recorded_block_per_job(const GemmCombinePushArgs& args, cudaStream_t branch) {
  launch_block_per_job_form<Recording>(args, branch);
}

}  // namespace fusescope::kernels
