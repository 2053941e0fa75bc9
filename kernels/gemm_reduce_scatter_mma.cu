// The third kernel around the mma.sync mainloop, without records and with.
#include "kernels/gemm_reduce_scatter_launch.cuh"

namespace fusescope::kernels {

template GemmReduceScatterLaunch launch_gemm_reduce_scatter_variant<kFirstMmaVariant, Silent>;
template GemmReduceScatterLaunch launch_gemm_reduce_scatter_variant<kFirstMmaVariant + 2, Silent>;
template GemmReduceScatterLaunch launch_gemm_reduce_scatter_variant<kFirstMmaVariant, Recording>;
template GemmReduceScatterLaunch
    launch_gemm_reduce_scatter_variant<kFirstMmaVariant + 2, Recording>;

}  // namespace fusescope::kernels
