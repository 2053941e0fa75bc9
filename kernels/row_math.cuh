#pragma once
// bf16 rows in units of eight elements (16 bytes): unpacking, fp32 accumulation, rounding; and the
// combine sum, whose order is fixed in this one place.

#include <cuda_bf16.h>

#include <cstdint>

#include "kernels/layer_args.hpp"

namespace fusescope::kernels {

__device__ inline float bf16_low(std::uint32_t pair) {
  return __uint_as_float(pair << 16);
}
__device__ inline float bf16_high(std::uint32_t pair) {
  return __uint_as_float(pair & 0xFFFF0000u);
}
__device__ inline std::uint32_t bf16_pair(float low, float high) {
  const __nv_bfloat162 pair = __floats2bfloat162_rn(low, high);
  return reinterpret_cast<const std::uint32_t&>(pair);
}

// sum[0..8) += weight * (eight bf16 of `row`)
__device__ inline void accumulate(float (&sum)[8], float weight, const uint4& row) {
  const std::uint32_t words[4] = {row.x, row.y, row.z, row.w};
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    sum[2 * i] = fmaf(weight, bf16_low(words[i]), sum[2 * i]);
    sum[2 * i + 1] = fmaf(weight, bf16_high(words[i]), sum[2 * i + 1]);
  }
}

__device__ inline uint4 round_to_bf16(const float (&sum)[8]) {
  return {bf16_pair(sum[0], sum[1]), bf16_pair(sum[2], sum[3]), bf16_pair(sum[4], sum[5]),
          bf16_pair(sum[6], sum[7])};
}

// Columns [8 * unit, 8 * unit + 8) of a token's combined row: the weighted sum of its K partial rows,
// fp32, in the order of k. Fused and serial layer both call it.
__device__ inline uint4 combine_unit(const LayerArgs& layer, int token, int unit) {
  constexpr int kAtOnce = 8;  // loads in flight per thread
  const std::int64_t hit = static_cast<std::int64_t>(token) * layer.topk;
  const std::int32_t* slots = layer.slots + hit;
  const float* weights = layer.mine().weights + hit;
  float sum[8] = {};
  for (int first = 0; first < layer.topk; first += kAtOnce) {
    uint4 rows[kAtOnce];
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i) {
      if (first + i < layer.topk) {
        // Through L2: in the fused layer the row was written during this kernel, by another SM.
        rows[i] =
            __ldcg(reinterpret_cast<const uint4*>(
                       layer.partial + static_cast<std::int64_t>(slots[first + i]) * layer.hidden) +
                   unit);
      }
    }
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i) {
      if (first + i < layer.topk)
        accumulate(sum, weights[first + i], rows[i]);
    }
  }
  return round_to_bf16(sum);
}

}  // namespace fusescope::kernels
