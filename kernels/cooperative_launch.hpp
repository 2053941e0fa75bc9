#pragma once
// Launches a kernel cooperatively, one block per SM: all blocks are resident together or the launch
// fails. Capturable.

#include <cuda_runtime.h>

#include <string>

#include "kernels/cuda_check.hpp"

namespace fusescope::kernels {

template <class Args>
void launch_cooperative(void (*kernel)(Args), const char* name, const Args& args, int blocks,
                        int threads, int shared_bytes, cudaStream_t stream) {
  FUSESCOPE_CUDA(
      cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, shared_bytes));
  int device = 0;
  int sms = 0;
  int blocks_per_sm = 0;
  FUSESCOPE_CUDA(cudaGetDevice(&device));
  FUSESCOPE_CUDA(cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, device));
  FUSESCOPE_CUDA(cudaOccupancyMaxActiveBlocksPerMultiprocessor(
      &blocks_per_sm, kernel, threads, static_cast<std::size_t>(shared_bytes)));
  if (blocks > sms * blocks_per_sm) {
    throw std::invalid_argument(std::string(name) + ": " + std::to_string(blocks) +
                                " blocks must run at once, but the device holds " +
                                std::to_string(sms * blocks_per_sm));
  }
  cudaLaunchAttribute cooperative{};
  cooperative.id = cudaLaunchAttributeCooperative;
  cooperative.val.cooperative = 1;
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(static_cast<unsigned>(blocks));
  config.blockDim = dim3(static_cast<unsigned>(threads));
  config.dynamicSmemBytes = static_cast<std::size_t>(shared_bytes);
  config.stream = stream;
  config.attrs = &cooperative;
  config.numAttrs = 1;
  FUSESCOPE_CUDA(cudaLaunchKernelEx(&config, kernel, args));
}

}  // namespace fusescope::kernels
