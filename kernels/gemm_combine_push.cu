#include "kernels/gemm_combine_push_launch.cuh"

namespace fusescope::kernels {
namespace {

GemmCombinePushLauncher launcher_of(const GemmVariant& variant, bool recorded) {
  const int index = variant_index(variant);
  if (variant.transposed)
    return transposed_gemm_combine_push_launcher(index, recorded);
  if (recorded)
    return recorded_gemm_combine_push_launcher(index);
  return kGemmCombinePushLaunchers<Silent, false>.at(static_cast<std::size_t>(index));
}

}  // namespace

void launch_gemm_combine_push(const GemmCombinePushArgs& args, const GemmVariant& variant,
                              int blocks, cudaStream_t stream) {
  const bool recorded = args.layer.is_recorded();
  const GemmCombinePushLauncher launcher = launcher_of(variant, recorded);
  if (launcher == nullptr)
    throw std::invalid_argument("gemm_combine_push: no kernel" +
                                std::string(recorded ? " that records" : "") + " was built for " +
                                to_string(variant));
  launcher(args, blocks, stream);
}

}  // namespace fusescope::kernels
