#pragma once
// Shared memory of one warpgroup that runs combine jobs, and the barriers by which its three parts hand
// it to each other:
//
//     front -- ring of pieces --> summing warps -- row buffers --> pusher
//
// A piece is the same columns of a token's K partial rows, brought by bulk copies, and the K weights. A
// view over the caller's memory, not an object in it.

#include <cstdint>

#include "kernels/gemm/gemm_smem.cuh"
#include "kernels/gemm_combine_push.hpp"

namespace fusescope::kernels {

inline constexpr std::int32_t kNoToken = -1;  // behind the last job

struct JobControl {
  // `full` completes when a piece has landed, `empty` when the summing warps have read it.
  std::uint64_t full[kMaxPieces];
  std::uint64_t empty[kMaxPieces];
  // `summed` completes when a row is in its buffer, `drained` when the copy engine has read it.
  std::uint64_t summed[kJobRows];
  std::uint64_t drained[kJobRows];
  std::int32_t piece_token[kMaxPieces];
  std::int32_t row_token[kJobRows];
};
static_assert(sizeof(JobControl) <= kJobControlBytes);

// Position in a ring whose depth is known at run time.
struct PiecePosition {
  int depth;
  int slot = 0;
  std::uint32_t parity = 0;

  __device__ void advance() {
    if (++slot == depth) {
      slot = 0;
      parity ^= 1;
    }
  }
};

struct JobMemory {
  unsigned char* base;
  int row_bytes;
  int topk;
  JobRing ring;

  __device__ uint4* row(int slot) const {
    return reinterpret_cast<uint4*>(base + slot * row_bytes);
  }
  // The units of hit k.
  __device__ uint4* piece(int slot, int k) const {
    return reinterpret_cast<uint4*>(piece_base(slot)) + k * ring.piece_units;
  }
  __device__ float* weights(int slot) const { return reinterpret_cast<float*>(piece(slot, topk)); }
  __device__ JobControl& control() const {
    return *reinterpret_cast<JobControl*>(piece_base(ring.pieces));
  }

  // By one thread; a barrier of the warpgroup comes after it.
  __device__ void init(std::uint32_t summing_warps) const {
    JobControl& c = control();
    for (int i = 0; i < ring.pieces; ++i) {
      ptx::mbarrier_init(&c.full[i], 1);
      ptx::mbarrier_init(&c.empty[i], summing_warps);
    }
    for (int i = 0; i < kJobRows; ++i) {
      ptx::mbarrier_init(&c.summed[i], summing_warps);
      ptx::mbarrier_init(&c.drained[i], 1);
    }
    // Orders the initialisation, generic stores, before the copy engine's complete_tx.
    ptx::fence_mbarrier_init(ptx::sem_release, ptx::scope_cluster);
  }

 private:
  __device__ unsigned char* piece_base(int slot) const {
    return base + kJobRows * row_bytes +
           slot * static_cast<int>(piece_bytes(topk, ring.piece_units));
  }
};

}  // namespace fusescope::kernels
