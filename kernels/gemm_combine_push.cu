#include "kernels/gemm_combine_push_launch.cuh"

namespace fusescope::kernels {

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

}  // namespace fusescope::kernels
