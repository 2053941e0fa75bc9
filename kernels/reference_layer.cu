#include "kernels/reference_layer.hpp"

#include <algorithm>

#include "kernels/cuda_check.hpp"

namespace fusescope::kernels {
namespace {

constexpr int kThreads = 256;
constexpr int kWarps = kThreads / 32;
constexpr int kFillBlocks = 4096;
constexpr int kMaxParts = kMaxRanks;

__device__ float widen(Bf16 value) {
  return __uint_as_float(static_cast<std::uint32_t>(value) << 16);
}

// SplitMix64's finaliser.
__device__ std::uint64_t mix(std::uint64_t x) {
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ull;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBull;
  return x ^ (x >> 31);
}

// Round to nearest even; the input is finite.
__device__ Bf16 narrow(float value) {
  const std::uint32_t bits = __float_as_uint(value);
  return static_cast<Bf16>((bits + 0x7FFFu + ((bits >> 16) & 1u)) >> 16);
}

__global__ void random_kernel(Bf16* to, std::int64_t count, float deviation, std::uint64_t seed) {
  const auto stride = static_cast<std::int64_t>(gridDim.x) * kThreads;
  for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x; i < count;
       i += stride) {
    const std::uint64_t bits = mix(mix(seed + 0x9E3779B97F4A7C15ull) +
                                   static_cast<std::uint64_t>(i) * 0x9E3779B97F4A7C15ull);
    const float u = (static_cast<float>(bits >> 40) + 0.5f) * 0x1p-24f;
    const float v = static_cast<float>(bits & 0xFFFFFFu) * 0x1p-24f;
    to[i] = narrow(deviation * sqrtf(-2.0f * logf(u)) * cospif(2.0f * v));
  }
}

__device__ float sum_over_warp(float value) {
  for (int step = 16; step > 0; step /= 2)
    value += __shfl_xor_sync(~0u, value, step);
  return value;
}

// Block: one hit. Warp: every kWarps-th intermediate column.
__global__ void __launch_bounds__(kThreads)
    reference_up_kernel(const __grid_constant__ ReferenceArgs args) {
  extern __shared__ float token_row[];
  const std::int64_t hit = blockIdx.x;
  const Bf16* row = args.tokens + hit / args.topk * args.hidden;
  for (int h = static_cast<int>(threadIdx.x); h < args.hidden; h += kThreads)
    token_row[h] = widen(row[h]);
  __syncthreads();
  const int warp = static_cast<int>(threadIdx.x) / 32;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const Bf16* expert = args.gate_up + static_cast<std::int64_t>(args.experts[hit]) * 2 *
                                          args.intermediate * args.hidden;
  for (int i = warp; i < args.intermediate; i += kWarps) {
    const Bf16* gate = expert + static_cast<std::int64_t>(i) * args.hidden;
    const Bf16* up = gate + static_cast<std::int64_t>(args.intermediate) * args.hidden;
    float g = 0;
    float u = 0;
    for (int h = lane; h < args.hidden; h += 32) {
      g += token_row[h] * widen(gate[h]);
      u += token_row[h] * widen(up[h]);
    }
    g = sum_over_warp(g);
    u = sum_over_warp(u);
    if (lane == 0)
      args.activated[hit * args.intermediate + i] = g / (1.0f + expf(-g)) * u;
  }
}

// Block: one token. Warp: every kWarps-th column of the output.
__global__ void __launch_bounds__(kThreads)
    reference_down_kernel(const __grid_constant__ ReferenceArgs args) {
  const std::int64_t token = blockIdx.x;
  const int warp = static_cast<int>(threadIdx.x) / 32;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  for (int h = warp; h < args.hidden; h += kWarps) {
    float total = 0;
    for (int k = 0; k < args.topk; ++k) {
      const std::int64_t hit = token * args.topk + k;
      const Bf16* down =
          args.down +
          (static_cast<std::int64_t>(args.experts[hit]) * args.hidden + h) * args.intermediate;
      const float* y = args.activated + hit * args.intermediate;
      float dot = 0;
      for (int i = lane; i < args.intermediate; i += 32)
        dot += y[i] * widen(down[i]);
      total += args.weights[hit] * sum_over_warp(dot);
    }
    if (lane == 0)
      args.partial[token * args.hidden + h] = total;
  }
}

struct Parts {
  const float* at[kMaxParts];
};

__device__ double sum_over_block(double value) {
  __shared__ double warps[kWarps];
  for (int step = 16; step > 0; step /= 2)
    value += __shfl_xor_sync(~0u, value, step);
  __syncthreads();
  if (threadIdx.x % 32 == 0)
    warps[threadIdx.x / 32] = value;
  __syncthreads();
  double total = 0;
  for (int w = 0; w < kWarps; ++w)
    total += warps[w];
  return total;
}

// Block: one row.
__global__ void __launch_bounds__(kThreads)
    compare_kernel(const Bf16* found, const __grid_constant__ Parts expected, int parts,
                   int columns, RowDifference* out) {
  double error = 0;
  double norm = 0;
  double bad = 0;
  const std::int64_t first = static_cast<std::int64_t>(blockIdx.x) * columns;
  for (int column = static_cast<int>(threadIdx.x); column < columns; column += kThreads) {
    double reference = 0;
    for (int p = 0; p < parts; ++p)
      reference += static_cast<double>(expected.at[p][first + column]);
    const double value = static_cast<double>(widen(found[first + column]));
    if (isfinite(value)) {
      error += (value - reference) * (value - reference);
    } else {
      bad += 1;
    }
    norm += reference * reference;
  }
  error = sum_over_block(error);
  norm = sum_over_block(norm);
  bad = sum_over_block(bad);
  if (threadIdx.x == 0)
    out[blockIdx.x] = {error, norm, static_cast<std::uint64_t>(bad)};
}

__global__ void __launch_bounds__(kThreads)
    checksum_kernel(const Bf16* from, std::int64_t count, std::uint64_t* out) {
  std::uint64_t sum = 0;
  const auto stride = static_cast<std::int64_t>(gridDim.x) * kThreads;
  for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x; i < count;
       i += stride)
    sum += mix(static_cast<std::uint64_t>(i) * 0x10001ull + from[i] + 1);
  for (int step = 16; step > 0; step /= 2)
    sum += __shfl_xor_sync(~0u, sum, step);
  if (threadIdx.x % 32 == 0)
    atomicAdd(reinterpret_cast<unsigned long long*>(out), static_cast<unsigned long long>(sum));
}

unsigned fill_grid(std::int64_t count) {
  return static_cast<unsigned>(
      std::clamp<std::int64_t>((count + kThreads - 1) / kThreads, 1, kFillBlocks));
}

}  // namespace

void launch_random_bf16(Bf16* to, std::int64_t count, float deviation, std::uint64_t seed,
                        cudaStream_t stream) {
  random_kernel<<<fill_grid(count), kThreads, 0, stream>>>(to, count, deviation, seed);
  FUSESCOPE_CUDA(cudaGetLastError());
}

void launch_reference_layer(const ReferenceArgs& args, cudaStream_t stream) {
  const auto hits = static_cast<unsigned>(args.token_count * args.topk);
  const auto bytes = static_cast<std::size_t>(args.hidden) * sizeof(float);
  FUSESCOPE_CUDA(cudaFuncSetAttribute(
      reference_up_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(bytes)));
  reference_up_kernel<<<hits, kThreads, bytes, stream>>>(args);
  reference_down_kernel<<<static_cast<unsigned>(args.token_count), kThreads, 0, stream>>>(args);
  FUSESCOPE_CUDA(cudaGetLastError());
}

void launch_compare(const Bf16* found, const float* const* expected, int parts, int rows,
                    int columns, RowDifference* out, cudaStream_t stream) {
  Parts all{};
  for (int p = 0; p < parts; ++p)
    all.at[p] = expected[p];
  compare_kernel<<<static_cast<unsigned>(rows), kThreads, 0, stream>>>(found, all, parts, columns,
                                                                       out);
  FUSESCOPE_CUDA(cudaGetLastError());
}

void launch_checksum(const Bf16* from, std::int64_t count, std::uint64_t* out,
                     cudaStream_t stream) {
  checksum_kernel<<<fill_grid(count), kThreads, 0, stream>>>(from, count, out);
  FUSESCOPE_CUDA(cudaGetLastError());
}

}  // namespace fusescope::kernels
