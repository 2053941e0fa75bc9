#pragma once
// The third kernel as a protocol: dense GEMM + ReduceScatter (kernels/gemm_reduce_scatter.cuh), on the
// layer's places, GEMM and checks. What a scenario's knobs mean to it: Subject, in scenario.hpp.

#include "protocol/layer/layer.hpp"

namespace fusescope::protocol {

// Slot order: segments of T rows, one per destination.
int segment_of(const Scenario& scenario, int rank, int destination);
int destination_of(const Scenario& scenario, int rank, int segment);
// The cell of a slot's partial row in an N tile.
CellId partial_cell(const Layer& layer, int rank, int slot, int n);

// One pusher: a thread of a block with a buffer of its own.
struct PushRole {
  Layer& layer;
  const Round& round;
  const BlockPlaces& block;
  int pusher;
};
Task run_pusher(Thread& thread, PushRole role);

// Tables of one expert that has all rows, and what every output must be.
void make_reduce_scatter_round(const Scenario& scenario, Round& round);

// One iteration on a device: src/engine/cuda/projection/iteration.cpp. `open_reduces`: of the iteration
// before, where a planted bug leaves them running.
Task reduce_scatter_round(Thread& stream, Layer& layer, const std::vector<int>& ranks,
                          const Round& round, std::vector<LaunchId>& open_reduces);

}  // namespace fusescope::protocol
