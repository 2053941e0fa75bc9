#include "kernels/cuda_check.hpp"

#include <cstdio>
#include <string>

namespace fusescope::kernels {

CudaError::CudaError(cudaError_t code, const char* call, const char* file, int line)
    : std::runtime_error(std::string(cudaGetErrorName(code)) + " (" + cudaGetErrorString(code) +
                         ") from " + call + " at " + file + ":" + std::to_string(line)),
      code_(code) {}

CudaError::CudaError(const CudaError& error, const std::string& also)
    : std::runtime_error(std::string(error.what()) + "; " + also), code_(error.code_) {}

void warn_cuda(cudaError_t code, const char* call) noexcept {
  if (code != cudaSuccess) {
    static_cast<void>(cudaGetLastError());
    std::fprintf(stderr, "fusescope: %s from %s\n", cudaGetErrorName(code), call);
  }
}

Stream make_stream() {
  cudaStream_t stream = nullptr;
  FUSESCOPE_CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  return Stream(stream);
}

CudaEvent make_event(unsigned flags) {
  cudaEvent_t event = nullptr;
  FUSESCOPE_CUDA(cudaEventCreateWithFlags(&event, flags));
  return CudaEvent(event);
}

DeviceBlock allocate_device(std::size_t bytes) {
  void* memory = nullptr;
  FUSESCOPE_CUDA(cudaMalloc(&memory, bytes));
  return DeviceBlock(memory);
}

HostBlock allocate_host(std::size_t bytes) {
  void* memory = nullptr;
  FUSESCOPE_CUDA(cudaHostAlloc(&memory, bytes, cudaHostAllocPortable | cudaHostAllocMapped));
  return HostBlock(memory);
}

}  // namespace fusescope::kernels
