#include <array>
#include <utility>

#include "kernels/gemm_reduce_scatter_launch.cuh"

namespace fusescope::kernels {
namespace {

using Launcher = GemmReduceScatterLaunch*;

// A deferred tile is signalled a tile late, which only delays pushes.
template <int Index, class Records>
constexpr Launcher launcher() {
  if constexpr (kGemmVariants[Index].epilogue == Epilogue::kStore &&
                !kGemmVariants[Index].deferred && !kGemmVariants[Index].gathers &&
                !kGemmVariants[Index].transposed) {
    return &launch_gemm_reduce_scatter_variant<Index, Records>;
  } else {
    return nullptr;
  }
}

template <class Records, int... Index>
constexpr auto make_launchers(std::integer_sequence<int, Index...>) {
  return std::array<Launcher, sizeof...(Index)>{launcher<Index, Records>()...};
}

template <class Records>
constexpr auto kLaunchers = make_launchers<Records>(
    std::make_integer_sequence<int, static_cast<int>(kGemmVariants.size())>());

}  // namespace

void launch_gemm_reduce_scatter(const GemmReduceScatterArgs& args, const GemmVariant& variant,
                                int blocks, cudaStream_t stream) {
  const int index = variant_index(variant);
  const auto& launchers = args.layer.is_recorded() ? kLaunchers<Recording> : kLaunchers<Silent>;
  const Launcher launcher = index < 0 ? nullptr : launchers.at(static_cast<std::size_t>(index));
  if (launcher == nullptr) {
    throw std::invalid_argument("gemm_reduce_scatter: " + to_string(variant) +
                                " is not built; plain stores are, neither deferred nor transposed");
  }
  launcher(args, blocks, stream);
}

}  // namespace fusescope::kernels
