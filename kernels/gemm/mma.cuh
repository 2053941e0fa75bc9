// Warp-wide matrix instructions that cuda::ptx does not offer: ldmatrix and mma.sync. PTX ISA, "Warp Level
// Matrix Instructions". All functions are executed by whole warps. Every GPU from sm_80 on has them.
#pragma once

#include <cstdint>

namespace fusescope::kernels::mma {

// "ldmatrix", four 8x8 matrices of 16-bit elements. Lane 8i + j gives the address of row j of matrix i, in
// shared memory; of each matrix, lane l gets elements 2 * (l % 4) and the next of row l / 4.
__device__ inline void load_matrices(std::uint32_t address, std::uint32_t (&r)[4]) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(address)
               : "memory");
}

// "mma.sync", m16n8k16: d += a * b, bf16 operands, fp32 accumulators. Lane l holds in d: row l / 4,
// columns 2 * (l % 4) and the next; then the same columns of row l / 4 + 8. `b` is a pair of 8x8 matrices
// of B^T, rows of B contiguous along K: what ldmatrix reads as it is.
__device__ inline void multiply(float (&d)[4], const std::uint32_t (&a)[4], std::uint32_t b0,
                                std::uint32_t b1) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
      "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

}  // namespace fusescope::kernels::mma
