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

// Up to kHitsAtOnce hits of a token: where their partial rows begin (in units) and their weights.
inline constexpr int kHitsAtOnce = 8;
struct Hits {
  std::int32_t first_unit[kHitsAtOnce];
  float weight[kHitsAtOnce];
  int count;
};

__device__ inline Hits load_hits(const LayerArgs& layer, int token, int first) {
  const std::int64_t at = static_cast<std::int64_t>(token) * layer.topk + first;
  Hits hits;
  hits.count = min(layer.topk - first, kHitsAtOnce);
#pragma unroll
  for (int i = 0; i < kHitsAtOnce; ++i) {
    if (i < hits.count) {
      hits.first_unit[i] = layer.slots[at + i] * (layer.hidden / 8);
      hits.weight[i] = layer.mine().weights[at + i];
    }
  }
  return hits;
}

// Adds unit `unit` of the hits' rows, in the order of k; all loads are in flight before the first is
// used.
__device__ inline void add_hits(const LayerArgs& layer, const Hits& hits, int unit,
                                float (&sum)[8]) {
  const auto* partial = reinterpret_cast<const uint4*>(layer.partial);
  uint4 rows[kHitsAtOnce];
#pragma unroll
  for (int i = 0; i < kHitsAtOnce; ++i) {
    // Through L2: in the fused layer the row was written during this kernel, by another SM.
    if (i < hits.count)
      rows[i] = __ldcg(partial + hits.first_unit[i] + unit);
  }
#pragma unroll
  for (int i = 0; i < kHitsAtOnce; ++i) {
    if (i < hits.count)
      accumulate(sum, hits.weight[i], rows[i]);
  }
}

// One unit of a token's combined row from hits in shared memory, `stride` units apart: the same sum, in
// the same order, as combine_row's.
__device__ inline uint4 sum_hits(const uint4* first, int stride, const float* weights, int hits) {
  float sum[8] = {};
#pragma unroll 8
  for (int k = 0; k < hits; ++k)
    accumulate(sum, weights[k], first[k * stride]);
  return round_to_bf16(sum);
}

// A token's combined row: the weighted sum of its K partial rows, fp32, in the order of k; by
// `threads` threads, of which this is number `thread`. The serial layer's: outputs of fused and serial
// layers are bitwise equal because the order of the sum is fixed in this file.
__device__ inline void combine_row(const LayerArgs& layer, int token, int thread, int threads,
                                   uint4* row) {
  const Hits head = load_hits(layer, token, 0);
  for (int unit = thread; unit < layer.hidden / 8; unit += threads) {
    float sum[8] = {};
    add_hits(layer, head, unit, sum);
    for (int first = kHitsAtOnce; first < layer.topk; first += kHitsAtOnce)
      add_hits(layer, load_hits(layer, token, first), unit, sum);
    row[unit] = round_to_bf16(sum);
  }
}

}  // namespace fusescope::kernels
