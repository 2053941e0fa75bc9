#include "kernels/activation.hpp"

#include "kernels/cuda_check.hpp"
#include "kernels/recording.cuh"
#include "kernels/row_math.cuh"

namespace fusescope::kernels {
namespace {

constexpr int kThreads = 256;
constexpr int kBlocks = 2048;

__device__ float silu_times(float gate, float up) {
  return __fdividef(gate, 1.0f + __expf(-gate)) * up;
}

__device__ std::uint32_t silu_pair(std::uint32_t gate, std::uint32_t up) {
  return bf16_pair(silu_times(bf16_low(gate), bf16_low(up)),
                   silu_times(bf16_high(gate), bf16_high(up)));
}

template <class Records>
__global__ void __launch_bounds__(kThreads)
    activation_kernel(const __grid_constant__ LayerArgs layer) {
  const typename Records::PhaseStamps stamps(layer.records, Phase::activation);
  const int units = layer.intermediate / 8;
  const std::int64_t total = static_cast<std::int64_t>(layer.expert_rows[layer.experts]) * units;
  for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x; i < total;
       i += static_cast<std::int64_t>(kBlocks) * kThreads) {
    const std::int64_t row = i / units;
    const std::int64_t unit = i % units;
    const auto* line = reinterpret_cast<const uint4*>(layer.gate_up + row * 2 * layer.intermediate);
    const uint4 gate = line[unit];
    const uint4 up = line[units + unit];
    reinterpret_cast<uint4*>(layer.act + row * layer.intermediate)[unit] = {
        silu_pair(gate.x, up.x), silu_pair(gate.y, up.y), silu_pair(gate.z, up.z),
        silu_pair(gate.w, up.w)};
  }
  if constexpr (Records::kOn)
    __syncthreads();
}

}  // namespace

void launch_activation(const LayerArgs& layer, cudaStream_t stream) {
  const auto kernel =
      layer.is_recorded() ? activation_kernel<Recording> : activation_kernel<Silent>;
  kernel<<<kBlocks, kThreads, 0, stream>>>(layer);
  FUSESCOPE_CUDA(cudaGetLastError());
}

}  // namespace fusescope::kernels
