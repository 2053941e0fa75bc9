#pragma once
// A config, resolved for one rank: the arguments of its kernel launches.

#include "engine/cuda/plan.hpp"
#include "engine/cuda/projection/memory.hpp"

namespace fusescope::engine::cuda::projection {

struct Plan {
  kernels::LayerArgs layer;
  kernels::GemmReduceScatterArgs fused;  // serial form: of it the GEMM alone
  kernels::GemmVariant variant;
  int blocks = 0;
  kernels::ReducePlanesArgs reduce;
};

// The config must be legal.
Plan make_plan(const Memory& memory, int rank, const Config& config, int sms, const Faults& faults);

}  // namespace fusescope::engine::cuda::projection
