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

// The start line before a timed iteration: a barrier of its own, then `hold_ns` more on the device, in
// which the host enqueues what is timed.
void launch_start_line(const LayerArgs& layer, std::uint64_t hold_ns, Part part,
                       cudaStream_t stream);

}  // namespace fusescope::kernels
