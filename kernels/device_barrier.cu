#include <algorithm>

#include "kernels/bounded_wait.cuh"
#include "kernels/cuda_check.hpp"
#include "kernels/device_barrier.hpp"
#include "kernels/recording.cuh"

namespace fusescope::kernels {
namespace {

// One thread per rank.
__device__ bool meet(const LayerArgs& layer, Wait what, std::uint64_t (Flags::*flags)[kMaxRanks],
                     std::uint64_t target, Part part) {
  const int r = static_cast<int>(threadIdx.x);
  if (part.arrive && !layer.faults.loses(what)) {
    // Releases what this rank wrote in earlier kernels (its tokens) or read in them (its planes, the
    // peers' tokens) to the peers' acquire of the flag.
    raise_flag((layer.shared[r].flags->*flags)[layer.rank], target);
  }
  return !part.wait || wait_for_flag(layer.guard, what, r, (layer.mine().flags->*flags)[r], target);
}

// The combined rows' barrier is the serial layer's, which does not record.
__device__ Phase phase_of(BarrierPoint point) {
  return point == BarrierPoint::entry ? Phase::entry_barrier : Phase::copied_barrier;
}

template <class Records>
__global__ void device_barrier_kernel(const __grid_constant__ LayerArgs layer, BarrierPoint point,
                                      Part part) {
  const typename Records::PhaseStamps stamps(layer.records, phase_of(point));
  const std::uint64_t target =
      layer.counters->iteration * kBarrierPoints + static_cast<std::uint64_t>(point);
  meet(layer, Wait::barrier, &Flags::barrier, target, part);
  if constexpr (Records::kOn)
    __syncthreads();
}

__global__ void start_line_kernel(const __grid_constant__ LayerArgs layer, Part part) {
  meet(layer, Wait::start, &Flags::start, layer.counters->iteration + 1, part);
}

__global__ void hold_kernel(const __grid_constant__ Guard guard, HoldWords* words,
                            std::uint64_t sequence, std::uint64_t most_ns) {
  const std::uint64_t begin = now_ns();
  // Orders nothing on the device: the stream does that. The acquire pairs with the host's release, so
  // that whatever the host did to launch the work lies before the end of this kernel.
  while (SystemAtomic<std::uint64_t>(words->released).load(cuda::memory_order_acquire) < sequence) {
    if (aborted(guard))
      return;
    if (now_ns() - begin > most_ns) {
      SystemAtomic<std::uint64_t>(words->missed).store(sequence, cuda::memory_order_relaxed);
      return;
    }
  }
}

}  // namespace

void launch_device_barrier(const LayerArgs& layer, BarrierPoint point, Part part,
                           cudaStream_t stream) {
  const auto kernel =
      layer.is_recorded() ? device_barrier_kernel<Recording> : device_barrier_kernel<Silent>;
  kernel<<<1, layer.ranks, 0, stream>>>(layer, point, part);
  FUSESCOPE_CUDA(cudaGetLastError());
}

void launch_start_line(const LayerArgs& layer, Part part, cudaStream_t stream) {
  start_line_kernel<<<1, layer.ranks, 0, stream>>>(layer, part);
  FUSESCOPE_CUDA(cudaGetLastError());
}

void launch_hold(const Guard& guard, HoldWords* words, std::uint64_t sequence,
                 cudaStream_t stream) {
  // Well inside the deadline of the peers, who wait for this device at the start line meanwhile.
  constexpr std::uint64_t kMostNs = 100'000'000;
  hold_kernel<<<1, 1, 0, stream>>>(guard, words, sequence,
                                   std::min(kMostNs, guard.deadline_ns / 4));
  FUSESCOPE_CUDA(cudaGetLastError());
}

}  // namespace fusescope::kernels
