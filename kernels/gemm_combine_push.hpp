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

// Warpgroups of a block, which run jobs independently of each other: at most, and with a GEMM of this
// variant, whose last warps make no whole one.
inline constexpr int kJobThreads = 128;
inline constexpr int kJobGroups = 3;
constexpr int job_groups(const GemmVariant& v) {
  return gemm_threads(v) / kJobThreads;
}

// What of a job's rows a warpgroup has fetched ahead.
struct JobRing {
  std::int32_t piece_units = 128;  // columns of a piece, in units of eight
  std::int32_t pieces = 0;
};

struct CombineArgs {
  std::uint32_t done_at = 0;  // finished tiles after which a row block is ready
  std::int32_t watermark_chunks = 1;
  JobRing ring;
};

struct GemmCombinePushArgs {
  GroupedGemmArgs gemm;
  LayerArgs layer;
  CombineArgs combine;
  std::int32_t compute_blocks = 0;
  bool all_hands = true;
  bool runs_jobs = true;             // false: the GEMM alone
  bool announces_residency = false;  // block per job: count the GEMM's blocks as they start
  // Tiles of kernel 1 after which a row block may be read; 0 = kernel 1 has ended before.
  std::uint32_t open_at = 0;
};

// --- shared memory of one warpgroup that runs jobs (job_memory.cuh) [bytes] ----------------------

inline constexpr int kJobRows = 2;  // row buffers: one is summed while the other is being pushed
inline constexpr int kMaxPieces = 8;
inline constexpr int kJobControlBytes = 256;

// The columns of K rows, and K weights.
constexpr long long piece_bytes(int topk, int piece_units) {
  return (topk * (16LL * piece_units + 4) + 15) / 16 * 16;
}
constexpr long long job_group_bytes(int hidden, int topk, const JobRing& ring) {
  return kJobRows * 2LL * hidden + ring.pieces * piece_bytes(topk, ring.piece_units) +
         kJobControlBytes;
}
// The widest pieces of which two can be in `bytes`, so that one is fetched while another is summed, and as
// many of them as there can be. No pieces: the jobs do not fit.
constexpr JobRing widest_job_ring(int hidden, int topk, long long bytes) {
  int widest = 128;
  while (widest >= 16 && widest * 8 >= 2 * hidden)
    widest /= 2;  // a row has no more
  JobRing ring;
  for (int units = widest; units >= 8 && ring.pieces < 2; units /= 2) {
    ring = {units, 0};
    while (ring.pieces < kMaxPieces &&
           job_group_bytes(hidden, topk, {units, ring.pieces + 1}) <= bytes)
      ++ring.pieces;
  }
  return ring;
}

// What a block of this variant leaves to each of its warpgroups. The control area behind the ring and
// the staged chunks stays the GEMM's.
constexpr int bytes_for_job_group(const GemmVariant& v) {
  return reusable_bytes(v) / job_groups(v) / 128 * 128;
}

// Throws CudaError or std::invalid_argument when the blocks cannot all be resident.
void launch_gemm_combine_push(const GemmCombinePushArgs& args, const GemmVariant& variant,
                              int blocks, cudaStream_t stream);

// Block per job, on the forked branch: waits until `compute_blocks` GEMM blocks are resident, then
// runs one block per job.
void launch_wait_for_residency(const GemmCombinePushArgs& args, cudaStream_t branch);
void launch_block_per_job(const GemmCombinePushArgs& args, cudaStream_t branch);

}  // namespace fusescope::kernels
