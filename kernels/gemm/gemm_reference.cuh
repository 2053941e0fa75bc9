// A grouped GEMM to compare with, and the comparison: one thread per output, fp64, no shared
// memory, no tensor core, nothing in common with the mainloop. For tests and for the bench's own
// check.
#pragma once

#include <cuda_bf16.h>

#include <cstdint>

#include "gemm_variants.hpp"

namespace fusescope::kernels::reference {

struct Problem {
  const __nv_bfloat16* a;  // [rows, k]
  const __nv_bfloat16* b;  // [experts, n, k]
  const std::int32_t* expert_rows;
  const std::int32_t* slack;  // [row blocks]: rows at their end that are not compared; may be null
  std::int64_t n;
  std::int64_t k;
  int experts;
  bool fused;  // silu(gate) * up, [rows, n / 2]
};

__device__ inline double dot(const __nv_bfloat16* x, const __nv_bfloat16* y, std::int64_t k) {
  double sum = 0;
  for (std::int64_t i = 0; i < k; ++i) {
    sum +=
        static_cast<double>(__bfloat162float(x[i])) * static_cast<double>(__bfloat162float(y[i]));
  }
  return sum;
}

__device__ inline double output(const Problem& p, std::int64_t row, std::int64_t column) {
  int expert = 0;
  while (p.expert_rows[expert + 1] <= row)
    ++expert;
  const __nv_bfloat16* x = p.a + row * p.k;
  const __nv_bfloat16* w = p.b + (expert * p.n + column) * p.k;
  const double first = dot(x, w, p.k);
  if (!p.fused)
    return first;
  return first / (1.0 + exp(-first)) * dot(x, w + p.n / 2 * p.k, p.k);
}

// sums[0] += |d - ref|^2 and sums[1] += |ref|^2 over every row_step-th row. NaN in d shows in sums.
__global__ void compare(Problem p, const __nv_bfloat16* d, std::int64_t rows, std::int64_t row_step,
                        double* sums) {
  const std::int64_t columns = p.fused ? p.n / 2 : p.n;
  const std::int64_t count = (rows + row_step - 1) / row_step * columns;
  double error = 0;
  double norm = 0;
  for (std::int64_t i = blockIdx.x * std::int64_t{blockDim.x} + threadIdx.x; i < count;
       i += std::int64_t{gridDim.x} * blockDim.x) {
    const std::int64_t row = i / columns * row_step;
    if (p.slack != nullptr && row % kBlockRows >= kBlockRows - p.slack[row / kBlockRows])
      continue;
    const double want = output(p, row, i % columns);
    const double off = static_cast<double>(__bfloat162float(d[row * columns + i % columns])) - want;
    error += off * off;
    norm += want * want;
  }
  atomicAdd(&sums[0], error);
  atomicAdd(&sums[1], norm);
}

// Random bf16 in [-scale, scale), never a constant pattern. Counter-based: value i depends on
// (seed, i) only.
__global__ void fill_random(__nv_bfloat16* out, std::int64_t count, std::uint64_t seed,
                            float scale) {
  for (std::int64_t i = blockIdx.x * std::int64_t{blockDim.x} + threadIdx.x; i < count;
       i += std::int64_t{gridDim.x} * blockDim.x) {
    std::uint64_t x = static_cast<std::uint64_t>(i) + seed * 0x9E3779B97F4A7C15ull;
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ull;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBull;
    x ^= x >> 31;
    const float unit = static_cast<float>(x >> 40) * 0x1p-24f;
    out[i] = __float2bfloat16(scale * (2.0f * unit - 1.0f));
  }
}

}  // namespace fusescope::kernels::reference
