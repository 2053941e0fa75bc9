// What both mainloops do to finished sums.
#pragma once

#include <cuda_bf16.h>

#include <cstdint>

namespace fusescope::kernels {

__device__ inline float silu(float x) {
  return __fdividef(x, 1.0f + __expf(-x));
}

__device__ inline std::uint32_t pack_bf16(float low, float high) {
  const __nv_bfloat162 pair = __floats2bfloat162_rn(low, high);
  return reinterpret_cast<const std::uint32_t&>(pair);
}

}  // namespace fusescope::kernels
