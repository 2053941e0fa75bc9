#include "kernels/bounded_wait.cuh"
#include "kernels/cuda_check.hpp"
#include "kernels/device_barrier.hpp"

namespace fusescope::kernels {
namespace {

// One thread per rank.
__device__ bool meet(const LayerArgs& layer, Wait what, std::uint64_t (Flags::*flags)[kMaxRanks],
                     std::uint64_t target, Part part) {
  const int r = static_cast<int>(threadIdx.x);
  if (part.arrive && !layer.faults.loses(what)) {
    // Orders what this rank wrote in earlier kernels (its tokens) or read in them (its planes, the
    // peers' tokens) before the peers' acquire of the flag.
    __threadfence_system();
    raise_flag((layer.shared[r].flags->*flags)[layer.rank], target);
  }
  return !part.wait || wait_for_flag(layer.guard, what, r, (layer.mine().flags->*flags)[r], target);
}

__global__ void device_barrier_kernel(const __grid_constant__ LayerArgs layer, BarrierPoint point,
                                      Part part) {
  const std::uint64_t target =
      layer.counters->iteration * kBarrierPoints + static_cast<std::uint64_t>(point);
  meet(layer, Wait::barrier, &Flags::barrier, target, part);
}

__global__ void start_line_kernel(const __grid_constant__ LayerArgs layer, std::uint64_t hold_ns,
                                  Part part) {
  const bool met = meet(layer, Wait::start, &Flags::start, layer.counters->iteration + 1, part);
  if (met && part.wait)
    spin_until(now_ns() + hold_ns);
}

}  // namespace

void launch_device_barrier(const LayerArgs& layer, BarrierPoint point, Part part,
                           cudaStream_t stream) {
  device_barrier_kernel<<<1, layer.ranks, 0, stream>>>(layer, point, part);
  FUSESCOPE_CUDA(cudaGetLastError());
}

void launch_start_line(const LayerArgs& layer, std::uint64_t hold_ns, Part part,
                       cudaStream_t stream) {
  start_line_kernel<<<1, layer.ranks, 0, stream>>>(layer, hold_ns, part);
  FUSESCOPE_CUDA(cudaGetLastError());
}

}  // namespace fusescope::kernels
