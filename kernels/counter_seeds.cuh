#pragma once
// What every iteration's counters start from, but for the arrival counters, which the tables seed. All of
// it was last used by kernels of the iteration before, on the same stream.

#include "kernels/bounded_wait.cuh"
#include "kernels/layer_args.hpp"

namespace fusescope::kernels {

// By all of `threads` threads together.
__device__ inline void clear_counters(const LayerArgs& layer, int thread, int threads) {
  for (int b = thread; b < layer.row_blocks_capacity; b += threads) {
    layer.computed[b].value = 0;
    layer.done[b].value = 0;
  }
  Counters& counters = *layer.counters;
  for (int i = thread; i < kMaxRanks * kMaxWatermarkChunks; i += threads)
    counters.pushed[i / kMaxWatermarkChunks][i % kMaxWatermarkChunks] = 0;
  if (thread == 0) {
    counters.dispenser = 0;
    counters.next_tile[0] = 0;
    counters.next_tile[1] = 0;
    counters.resident = 0;
    counters.link_epoch_ns = now_ns();
  }
  if (thread < kMaxRanks) {
    counters.pull_free[thread] = 0;
    counters.push_free[thread] = 0;
  }
}

}  // namespace fusescope::kernels
