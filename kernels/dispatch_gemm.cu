#include "kernels/dispatch_gemm.cuh"

#include <algorithm>
#include <array>
#include <utility>

#include "kernels/cooperative_launch.hpp"
#include "kernels/gemm/gemm_launch.hpp"

namespace fusescope::kernels {
namespace {

template <int Index>
void launch(const DispatchGemmArgs& args, int blocks, cudaStream_t stream) {
  constexpr GemmVariant V = kGemmVariants[Index];
  const auto communication =
      static_cast<int>(communication_bytes(args.tokens_per_block, args.layer.hidden));
  launch_cooperative(dispatch_gemm_kernel<Index, NoProbe>, "dispatch_gemm", args, blocks,
                     kGemmThreads, std::max(shared_bytes(V), communication), stream);
}

using Launcher = void (*)(const DispatchGemmArgs&, int, cudaStream_t);

template <int... Index>
constexpr auto make_launchers(std::integer_sequence<int, Index...>) {
  return std::array<Launcher, sizeof...(Index)>{&launch<Index>...};
}

constexpr auto kLaunchers =
    make_launchers(std::make_integer_sequence<int, static_cast<int>(kGemmVariants.size())>());

}  // namespace

void launch_dispatch_gemm(const DispatchGemmArgs& args, const GemmVariant& variant, int blocks,
                          cudaStream_t stream) {
  kLaunchers.at(static_cast<std::size_t>(variant_index(variant)))(args, blocks, stream);
}

}  // namespace fusescope::kernels
