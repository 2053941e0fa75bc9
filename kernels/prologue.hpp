#pragma once
// Prologue of an iteration, in one kernel: ids exchange, schedule tables, seeded counters and copy-in.
// In: this rank's ids, weights and tokens (LayerArgs::own_ids, own_weights, input). Out: everybody's ids
// and weights, the tables, the counters, this rank's shared tokens; when it has ended, every rank's shared
// tokens are there. Which orders what, and why no entry barrier is needed: layer_args.hpp.
//
// The first kScheduleBlocks blocks are one cluster. They send the ids, wait for everybody's, and build the
// tables (schedule_build.cuh), which takes two barriers of the cluster. The other blocks copy the tokens
// meanwhile; with dispatch push, to all ranks.

#include <cuda_runtime_api.h>

#include <cstddef>
#include <string>

#include "kernels/layer_args.hpp"
#include "layer/config.hpp"
#include "layer/tables_device.hpp"

namespace fusescope::kernels {

// What a launch does. Ranks that share a GPU take the steps one by one: all of them send before any of
// them waits for ids, and have copied their tokens before any of them waits for tokens.
struct PrologueSteps {
  bool send = true;   // this rank's ids go out
  bool build = true;  // waits for all ids; tables, counters, copy-in
  bool meet = true;   // waits for all ranks' tokens, and counts the iteration
};

struct PrologueArgs {
  LayerArgs layer;
  SlotOrder slot_order = SlotOrder::by_token;
  std::int32_t tokens_per_warp = 0;  // of the cluster's warps
  std::int32_t shared_bytes = 0;     // of a block
  std::uint32_t* marks =
      nullptr;  // [row blocks, 2, 4]: rows that are a token's smallest, its largest
  std::int32_t* stash = nullptr;  // [hits of a warp, by warp]; null: it fits in shared memory
  PrologueSteps steps;
};

// Bytes of device memory that a prologue works in.
std::size_t prologue_workspace_bytes(const TableSizes& sizes);

// `workspace` is aligned to 256 bytes.
PrologueArgs make_prologue_args(const LayerArgs& layer, const TableSizes& sizes,
                                SlotOrder slot_order, void* workspace);

// "", or which size the prologue's blocks cannot hold.
std::string why_no_prologue(const TableSizes& sizes);

// Throws CudaError, or std::invalid_argument where the blocks cannot all be resident.
void launch_prologue(const PrologueArgs& args, cudaStream_t stream);

}  // namespace fusescope::kernels
