#pragma once
// Kernel 2: down GEMM + top-k combine + push.
//
// Dispenser form: one cooperative launch, one block per SM. Blocks below `compute_blocks` run the GEMM
// and, with all hands, then join the jobs; the other blocks run jobs from the start.
// Block per job: the cooperative launch holds the GEMM's blocks only. Once they are all resident, a
// second launch on a forked branch runs one short-lived block per job on the SMs that are left, so
// that no job block can take the place of a block that it waits for.
//
// In: act [rows, I], the schedule tables, counters seeded. Out: this rank's plane on every rank, and
// its watermarks.

#include <cuda_runtime_api.h>

#include "kernels/gemm/gemm_args.hpp"
#include "kernels/gemm/gemm_variants.hpp"
#include "kernels/layer_args.hpp"

namespace fusescope::kernels {

struct CombineArgs {
  std::uint32_t done_at = 0;  // finished tiles after which a row block is ready
  std::int32_t watermark_chunks = 1;
};

struct GemmCombinePushArgs {
  GroupedGemmArgs gemm;
  LayerArgs layer;
  CombineArgs combine;
  std::int32_t compute_blocks = 0;
  bool all_hands = true;
  bool runs_jobs = true;             // false: the GEMM alone
  bool announces_residency = false;  // block per job: count the GEMM's blocks as they start
};

// Warpgroups of a block, which run jobs independently of each other.
inline constexpr int kJobGroups = 3;

// Shared memory that a block needs to run jobs. [bytes]
long long job_bytes(int hidden);

// Throws CudaError or std::invalid_argument when the blocks cannot all be resident.
void launch_gemm_combine_push(const GemmCombinePushArgs& args, const GemmVariant& variant,
                              int blocks, cudaStream_t stream);

// Block per job, on the forked branch: waits until `compute_blocks` GEMM blocks are resident, then
// runs one block per job.
void launch_wait_for_residency(const GemmCombinePushArgs& args, cudaStream_t branch);
void launch_block_per_job(const GemmCombinePushArgs& args, cudaStream_t branch);

}  // namespace fusescope::kernels
