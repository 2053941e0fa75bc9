// The plain kernel around the mainloop. Included by the small per-variant .cu files only.
#pragma once

#include "gemm_launch.hpp"
#include "grouped_gemm.cuh"
#include "kernels/sm_clock.cuh"

namespace fusescope::kernels {

template <int Index>
__global__ void __launch_bounds__(gemm_threads(kGemmVariants[Index]), 1)
    grouped_gemm_kernel(const __grid_constant__ GroupedGemmArgs args) {
  extern __shared__ __align__(1024) unsigned char dynamic_smem[];
  const SmClock clock(args.clock);
  NoGate gate;
  NoSignal signal;
  NoProbe probe;
  grouped_gemm<kGemmVariants[Index]>(args, dynamic_smem, gate, signal, probe,
                                     static_cast<int>(blockIdx.x), static_cast<int>(gridDim.x));
}

template <int Index>
cudaError_t launch_grouped_gemm_variant(const GroupedGemmArgs& args, int workers,
                                        cudaStream_t stream) {
  constexpr int kBytes = shared_bytes(kGemmVariants[Index]);
  constexpr int kThreads = gemm_threads(kGemmVariants[Index]);
  const cudaError_t error = cudaFuncSetAttribute(
      grouped_gemm_kernel<Index>, cudaFuncAttributeMaxDynamicSharedMemorySize, kBytes);
  if (error != cudaSuccess)
    return error;
  grouped_gemm_kernel<Index><<<workers, kThreads, kBytes, stream>>>(args);
  return cudaGetLastError();
}

}  // namespace fusescope::kernels
