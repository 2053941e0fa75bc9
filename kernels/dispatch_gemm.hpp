#pragma once
// Kernel 1: AllGather + gate/up GEMM in one cooperative launch, one block per SM. Blocks below
// `compute_blocks` run the grouped GEMM behind gates; the rest pull tokens, scatter them and count
// arrivals (communication.cuh). With a variant that gathers, a token lands once, among all tokens, and the
// GEMM's producers look its slots up. With no block set apart for that, all blocks fetch their share of the
// tokens first and then compute: no SM is taxed, and only the GEMM's head hides any communication. Behind the first
// `head` tokens of the pull order, each block fetches its share beside its tiles (background_fetch.cuh).
//
// In: every rank's shared tokens, the schedule tables, arrival counters seeded with slack.
// Out: gate_up [rows, 2I], or act [rows, I] with the activation fused; per row block, its finished tiles. What padding
// rows hold is the GEMM's affair (gemm/gemm_args.hpp, slack); no hit reads it.

#include <cuda_runtime_api.h>

#include "kernels/gemm/gemm_args.hpp"
#include "kernels/gemm/gemm_variants.hpp"
#include "kernels/layer_args.hpp"

namespace fusescope::kernels {

struct DispatchGemmArgs {
  GroupedGemmArgs gemm;
  LayerArgs layer;
  std::int32_t compute_blocks = 0;
  std::int32_t tokens_per_block = 0;  // at most a block's threads; where it computes, its consumers
  bool fetches_first = false;         // compute blocks fetch tokens before they compute:
  std::int32_t head = 0;              // so many of them; the others beside their tiles
  std::uint32_t open_at = kBlockRows;  // arrivals that open a gate; 0 = gates stand open
};

// Shared memory that the communication role needs. [bytes]
constexpr long long communication_bytes(int tokens_per_block, int hidden) {
  return static_cast<long long>(tokens_per_block) * (2LL * hidden + 8);
}

// `blocks` = compute_blocks + communication blocks. Throws CudaError when they cannot all be resident.
void launch_dispatch_gemm(const DispatchGemmArgs& args, const GemmVariant& variant, int blocks,
                          cudaStream_t stream);

}  // namespace fusescope::kernels
