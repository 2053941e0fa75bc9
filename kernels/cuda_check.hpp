#pragma once
// CUDA calls that fail loudly, and the handles that the host side of the kernels owns.

#include <cuda_runtime_api.h>

#include <cstddef>
#include <stdexcept>
#include <string>
#include <utility>

namespace fusescope::kernels {

// A CUDA call failed. `sticky` errors leave the context unusable: only a new process can go on.
class CudaError : public std::runtime_error {
 public:
  CudaError(cudaError_t code, const char* call, const char* file, int line);
  // The same error, with what else is known of it.
  CudaError(const CudaError& error, const std::string& also);
  cudaError_t code() const { return code_; }

 private:
  cudaError_t code_;
};

// The runtime also remembers a failed call's error, for the next cudaGetLastError: that is forgotten
// here, so that it is not taken for a later launch's.
inline void check_cuda(cudaError_t code, const char* call, const char* file, int line) {
  if (code != cudaSuccess) {
    static_cast<void>(cudaGetLastError());
    throw CudaError(code, call, file, line);
  }
}

// For destructors: says what went wrong on stderr and goes on.
void warn_cuda(cudaError_t code, const char* call) noexcept;

#define FUSESCOPE_CUDA(call) ::fusescope::kernels::check_cuda((call), #call, __FILE__, __LINE__)
#define FUSESCOPE_CUDA_NOEXCEPT(call) ::fusescope::kernels::warn_cuda((call), #call)

// Sets the calling thread's device for a scope.
class OnDevice {
 public:
  explicit OnDevice(int device) {
    FUSESCOPE_CUDA(cudaGetDevice(&before_));
    FUSESCOPE_CUDA(cudaSetDevice(device));
  }
  ~OnDevice() { FUSESCOPE_CUDA_NOEXCEPT(cudaSetDevice(before_)); }
  OnDevice(const OnDevice&) = delete;
  OnDevice& operator=(const OnDevice&) = delete;

 private:
  int before_ = 0;
};

// One handle, destroyed by `Destroy`; move-only.
template <class Handle, cudaError_t (*Destroy)(Handle)>
class Owned {
 public:
  Owned() = default;
  explicit Owned(Handle handle) : handle_(handle) {}
  ~Owned() { reset(); }
  Owned(Owned&& other) noexcept : handle_(std::exchange(other.handle_, Handle{})) {}
  Owned& operator=(Owned&& other) noexcept {
    if (this != &other) {
      reset();
      handle_ = std::exchange(other.handle_, Handle{});
    }
    return *this;
  }
  Owned(const Owned&) = delete;
  Owned& operator=(const Owned&) = delete;

  Handle get() const { return handle_; }
  explicit operator bool() const { return handle_ != Handle{}; }
  void reset() {
    if (handle_ != Handle{})
      FUSESCOPE_CUDA_NOEXCEPT(Destroy(handle_));
    handle_ = Handle{};
  }

 private:
  Handle handle_{};
};

using Stream = Owned<cudaStream_t, cudaStreamDestroy>;
using CudaEvent = Owned<cudaEvent_t, cudaEventDestroy>;
using GraphExec = Owned<cudaGraphExec_t, cudaGraphExecDestroy>;
using Graph = Owned<cudaGraph_t, cudaGraphDestroy>;

Stream make_stream();
CudaEvent make_event(unsigned flags = cudaEventDefault);

// Device memory of the current device, and page-locked host memory that every device can write.
using DeviceBlock = Owned<void*, cudaFree>;
using HostBlock = Owned<void*, cudaFreeHost>;
DeviceBlock allocate_device(std::size_t bytes);
HostBlock allocate_host(std::size_t bytes);

}  // namespace fusescope::kernels
