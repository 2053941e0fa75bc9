#include "kernels/dispatch_gemm_launch.cuh"

namespace fusescope::kernels {
namespace {

DispatchGemmLauncher launcher_of(const GemmVariant& variant, bool recorded) {
  const int index = variant_index(variant);
  switch (kind_of(variant)) {
    case DispatchGemms::gathering:
      return gathering_dispatch_gemm_launcher(index, recorded);
    case DispatchGemms::transposed:
      return transposed_dispatch_gemm_launcher(index, recorded);
    case DispatchGemms::gathering_transposed:
      return gathering_transposed_dispatch_gemm_launcher(index, recorded);
    case DispatchGemms::plain:
      break;
  }
  if (recorded)
    return recorded_dispatch_gemm_launcher(index);
  return kDispatchGemmLaunchers<Silent, DispatchGemms::plain>.at(static_cast<std::size_t>(index));
}

}  // namespace

void launch_dispatch_gemm(const DispatchGemmArgs& args, const GemmVariant& variant, int blocks,
                          cudaStream_t stream) {
  const bool recorded = args.layer.is_recorded();
  const DispatchGemmLauncher launcher = launcher_of(variant, recorded);
  if (launcher == nullptr)
    throw std::invalid_argument("dispatch_gemm: no kernel" +
                                std::string(recorded ? " that records" : "") + " was built for " +
                                to_string(variant));
  launcher(args, blocks, stream);
}

}  // namespace fusescope::kernels
