// The plain kernel around the mainloop. Included by the small per-variant .cu files only.
#pragma once

#include "gemm_launch.hpp"
#include "grouped_gemm.cuh"

namespace fusescope::kernels {

template <int Index>
__global__ void __launch_bounds__(kGemmThreads, 1)
    grouped_gemm_kernel(const __grid_constant__ GroupedGemmArgs args) {
  extern __shared__ __align__(1024) unsigned char dynamic_smem[];
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
  const cudaError_t error = cudaFuncSetAttribute(
      grouped_gemm_kernel<Index>, cudaFuncAttributeMaxDynamicSharedMemorySize, kBytes);
  if (error != cudaSuccess)
    return error;
  constexpr int kCluster = kGemmVariants[Index].cluster;
  cudaLaunchAttribute cluster{};
  cluster.id = cudaLaunchAttributeClusterDimension;
  cluster.val.clusterDim = {kCluster, 1, 1};
  cudaLaunchConfig_t config{};
  config.gridDim = dim3((workers + kCluster - 1) / kCluster * kCluster);
  config.blockDim = dim3(kGemmThreads);
  config.dynamicSmemBytes = kBytes;
  config.stream = stream;
  config.attrs = &cluster;
  config.numAttrs = kCluster > 1 ? 1 : 0;
  return cudaLaunchKernelEx(&config, grouped_gemm_kernel<Index>, args);
}

}  // namespace fusescope::kernels
