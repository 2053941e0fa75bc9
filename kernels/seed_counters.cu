#include "kernels/seed_counters.hpp"

#include "kernels/counter_seeds.cuh"
#include "kernels/cuda_check.hpp"
#include "kernels/recording.cuh"

namespace fusescope::kernels {
namespace {

constexpr int kThreads = 1024;

// Its end is that of the schedule build, whose first kernels are a library's.
template <class Records>
__global__ void __launch_bounds__(kThreads)
    seed_counters_kernel(const __grid_constant__ LayerArgs layer) {
  const int thread = static_cast<int>(threadIdx.x);
  for (int b = thread; b < layer.row_blocks_capacity; b += kThreads) {
    layer.arrivals[b].value = static_cast<std::uint32_t>(layer.slack[b]);
  }
  clear_counters(layer, thread, kThreads);
  if (thread == 0)
    layer.counters->iteration += 1;
  if constexpr (Records::kOn) {
    __syncthreads();
    if (thread == 0)
      stamp_end(layer.records, Phase::schedule_build);
  }
}

}  // namespace

void launch_seed_counters(const LayerArgs& layer, cudaStream_t stream) {
  const auto kernel =
      layer.is_recorded() ? seed_counters_kernel<Recording> : seed_counters_kernel<Silent>;
  kernel<<<1, kThreads, 0, stream>>>(layer);
  FUSESCOPE_CUDA(cudaGetLastError());
}

}  // namespace fusescope::kernels
