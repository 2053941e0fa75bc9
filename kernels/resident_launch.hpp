#pragma once
// Launches a kernel whose blocks wait for each other, one block per SM: the host refuses more blocks than
// the device holds at once. Capturable.
//
//   LaunchOrder::stream         cooperative: all blocks begin together, when the kernel before has ended.
//   LaunchOrder::programmatic   each block begins as soon as an SM has room for it, which may be while the
//                               kernel before still runs: the kernel itself waits for what it needs of
//                               that (follow.cuh). Not cooperative: the driver lets no such kernel begin
//                               so. All blocks do get an SM: the kernel before never waits for this one,
//                               and the kernel behind begins only when all of these have begun.

#include <cuda_runtime.h>

#include <string>

#include "kernels/cuda_check.hpp"
#include "kernels/layer_args.hpp"

namespace fusescope::kernels {

inline cudaLaunchAttribute launch_attribute(LaunchOrder order) {
  cudaLaunchAttribute attribute{};
  if (order == LaunchOrder::programmatic) {
    attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    attribute.val.programmaticStreamSerializationAllowed = 1;
  } else {
    attribute.id = cudaLaunchAttributeCooperative;
    attribute.val.cooperative = 1;
  }
  return attribute;
}

template <class Args>
void launch_resident(void (*kernel)(Args), const char* name, const Args& args, int blocks,
                     int threads, int shared_bytes, LaunchOrder order, cudaStream_t stream) {
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
  cudaLaunchAttribute attribute = launch_attribute(order);
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(static_cast<unsigned>(blocks));
  config.blockDim = dim3(static_cast<unsigned>(threads));
  config.dynamicSmemBytes = static_cast<std::size_t>(shared_bytes);
  config.stream = stream;
  config.attrs = &attribute;
  config.numAttrs = 1;
  FUSESCOPE_CUDA(cudaLaunchKernelEx(&config, kernel, args));
}

}  // namespace fusescope::kernels
