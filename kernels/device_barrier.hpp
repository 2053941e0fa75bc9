#pragma once
// Barrier between the ranks' GPUs: each rank stores a growing number into its own flag on every rank
// and waits until all of its flags carry that number. Arriving and waiting can be launched apart, for
// ranks that share a GPU: all of them arrive before any of them waits.

#include <cuda_runtime_api.h>

#include "kernels/layer_args.hpp"

namespace fusescope::kernels {

// Barriers of one iteration, in order. `combined`: serial layer, all ranks' combined rows are there.
enum class BarrierPoint : std::int32_t { entry = 0, copied = 1, combined = 2 };
inline constexpr int kBarrierPoints = 3;

struct Part {
  bool arrive = true;
  bool wait = true;
};

void launch_device_barrier(const LayerArgs& layer, BarrierPoint point, Part part,
                           cudaStream_t stream);

// The start line before a timed iteration: a barrier of its own.
void launch_start_line(const LayerArgs& layer, Part part, cudaStream_t stream);

// Page-locked host memory, one per stream that is held.
struct HoldWords {
  std::uint64_t released = 0;  // by the host: the last hold that may end
  std::uint64_t missed = 0;    // by the device: the last hold that ended without being released
};

// Holds the stream until the host has released hold number `sequence` (1, 2, ...), so that work which
// the host enqueues meanwhile begins without waiting for the host. Ends unreleased when the launch is
// aborted, and after a tenth of a second at most: where launches block until their kernel has ended
// (CUDA_LAUNCH_BLOCKING, some tools), the host can't get as far as the release.
void launch_hold(const Guard& guard, HoldWords* words, std::uint64_t sequence, cudaStream_t stream);

}  // namespace fusescope::kernels
