#pragma once
// Host side of the third kernel, for the files that instantiate it: one for each mainloop.

#include <stdexcept>
#include <string>

#include "kernels/gemm_reduce_scatter.cuh"
#include "kernels/resident_launch.hpp"

namespace fusescope::kernels {

template <int Index, class Records>
void launch_gemm_reduce_scatter_variant(const GemmReduceScatterArgs& args, int blocks,
                                        cudaStream_t stream) {
  constexpr GemmVariant V = kGemmVariants[Index];
  // Pushers of compute blocks reuse the ring and the staging chunks; the control area behind them stays.
  const long long wanted = push_bytes(args.push.pushers, args.push.rows, args.layer.hidden);
  if (wanted > bytes_for_pushes(V)) {
    throw std::invalid_argument(
        "gemm_reduce_scatter: " + std::to_string(args.push.pushers) + " pushers of " +
        std::to_string(args.push.rows) + " rows need " + std::to_string(wanted) +
        " bytes of shared memory, the GEMM leaves " + std::to_string(bytes_for_pushes(V)));
  }
  launch_resident(gemm_reduce_scatter_kernel<Index, Records>, "gemm_reduce_scatter", args, blocks,
                  gemm_threads(V), shared_bytes(V), LaunchOrder::stream, stream);
}

using GemmReduceScatterLaunch = void(const GemmReduceScatterArgs&, int, cudaStream_t);

// Those of the mma.sync mainloop: in gemm_reduce_scatter_mma.cu, which is compiled for more GPUs.
extern template GemmReduceScatterLaunch
    launch_gemm_reduce_scatter_variant<kFirstMmaVariant, Silent>;
extern template GemmReduceScatterLaunch
    launch_gemm_reduce_scatter_variant<kFirstMmaVariant + 2, Silent>;
extern template GemmReduceScatterLaunch
    launch_gemm_reduce_scatter_variant<kFirstMmaVariant, Recording>;
extern template GemmReduceScatterLaunch
    launch_gemm_reduce_scatter_variant<kFirstMmaVariant + 2, Recording>;

}  // namespace fusescope::kernels
