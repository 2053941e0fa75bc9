#pragma once
// The GPUs of this machine, for tests that need some.

#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include "kernels/cuda_check.hpp"

namespace fusescope::timeline {

inline int gpus() {
  int count = 0;
  return cudaGetDeviceCount(&count) == cudaSuccess ? count : 0;
}

// Both ways, if that has not been done.
inline void enable_peer_access(int a, int b) {
  for (const auto& [from, to] : {std::pair(a, b), std::pair(b, a)}) {
    const kernels::OnDevice on(from);
    const cudaError_t error = cudaDeviceEnablePeerAccess(to, 0);
    if (error != cudaErrorPeerAccessAlreadyEnabled) {
      FUSESCOPE_CUDA(error);
    }
    static_cast<void>(cudaGetLastError());
  }
}

}  // namespace fusescope::timeline

#define FUSESCOPE_NEED_GPUS(n)                                                                 \
  if (::fusescope::timeline::gpus() < (n)) {                                                   \
    GTEST_SKIP() << "needs " << (n) << " GPUs, " << ::fusescope::timeline::gpus() << " found"; \
  }
