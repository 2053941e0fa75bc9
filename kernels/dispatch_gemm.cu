#include "kernels/dispatch_gemm_launch.cuh"

namespace fusescope::kernels {
namespace {

constexpr auto kLaunchers = dispatch_gemm_launchers<Silent>(
    std::make_integer_sequence<int, static_cast<int>(kGemmVariants.size())>());

}  // namespace

void launch_dispatch_gemm(const DispatchGemmArgs& args, const GemmVariant& variant, int blocks,
                          cudaStream_t stream) {
  const int index = variant_index(variant);
  if (args.layer.is_recorded()) {
    launch_recorded_dispatch_gemm(args, index, blocks, stream);
  } else {
    kLaunchers.at(static_cast<std::size_t>(index))(args, blocks, stream);
  }
}

}  // namespace fusescope::kernels
