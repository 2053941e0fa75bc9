// Kernels that do what the protocol must not: atomics on words of other ranks. Compiled to PTX only, to show
// that the check of the real kernels sees them.
#include "kernels/bounded_wait.cuh"
#include "kernels/gemm_combine_push.hpp"

namespace fusescope::kernels {

// The watermark counted by a peer, as one would with native peer atomics.
__global__ void adds_to_peer_flag(const __grid_constant__ GemmCombinePushArgs args) {
  Flags& flags = *args.layer.shared[threadIdx.x].flags;
  SystemAtomic<std::uint64_t>(flags.watermark[args.layer.rank][0])
      .fetch_add(1, cuda::memory_order_release);
}

__global__ void adds_to_first_peer(const __grid_constant__ LayerArgs layer) {
  GpuAtomic<std::uint64_t>(layer.shared[0].flags->ids[layer.rank])
      .fetch_max(1, cuda::memory_order_relaxed);
}

// A pointer that comes out of memory may be anybody's.
__global__ void adds_through_memory(const __grid_constant__ LayerArgs layer) {
  auto** const words = reinterpret_cast<std::uint32_t**>(layer.gathered);
  GpuAtomic<std::uint32_t>(*words[threadIdx.x]).fetch_add(1, cuda::memory_order_relaxed);
}

__global__ void adds_to_own_counter(const __grid_constant__ LayerArgs layer) {
  GpuAtomic<std::uint32_t>(layer.arrivals[layer.slots[threadIdx.x] / 128].value)
      .fetch_add(1, cuda::memory_order_release);
}

}  // namespace fusescope::kernels
