#include "kernels/reference_projection.hpp"

#include "kernels/cuda_check.hpp"

namespace fusescope::kernels {
namespace {

constexpr int kThreads = 256;
constexpr int kWarps = kThreads / 32;

__device__ float widen(Bf16 value) {
  return __uint_as_float(static_cast<std::uint32_t>(value) << 16);
}

// Block: one row. Warp: every kWarps-th column.
__global__ void __launch_bounds__(kThreads)
    reference_projection_kernel(const Bf16* x, const Bf16* weights, float* part, int columns,
                                int depth) {
  extern __shared__ float row[];
  const Bf16* from = x + static_cast<std::int64_t>(blockIdx.x) * depth;
  for (int k = static_cast<int>(threadIdx.x); k < depth; k += kThreads)
    row[k] = widen(from[k]);
  __syncthreads();
  const int warp = static_cast<int>(threadIdx.x) / 32;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  for (int column = warp; column < columns; column += kWarps) {
    const Bf16* w = weights + static_cast<std::int64_t>(column) * depth;
    float sum = 0;
    for (int k = lane; k < depth; k += 32)
      sum += row[k] * widen(w[k]);
    for (int step = 16; step > 0; step /= 2)
      sum += __shfl_xor_sync(~0u, sum, step);
    if (lane == 0)
      part[static_cast<std::int64_t>(blockIdx.x) * columns + column] = sum;
  }
}

}  // namespace

void launch_reference_projection(const Bf16* x, const Bf16* weights, float* part, int rows,
                                 int columns, int depth, cudaStream_t stream) {
  const int bytes = depth * static_cast<int>(sizeof(float));
  FUSESCOPE_CUDA(cudaFuncSetAttribute(reference_projection_kernel,
                                      cudaFuncAttributeMaxDynamicSharedMemorySize, bytes));
  reference_projection_kernel<<<static_cast<unsigned>(rows), kThreads,
                                static_cast<std::size_t>(bytes), stream>>>(x, weights, part,
                                                                           columns, depth);
  FUSESCOPE_CUDA(cudaGetLastError());
}

}  // namespace fusescope::kernels
