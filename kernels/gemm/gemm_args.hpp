// What a grouped GEMM needs to know, and the host side that prepares it. Host code only needs
// cuda.h for the type CUtensorMap; the encoder is found through the runtime, so nothing links
// libcuda.
//
//   D[rows, N] = A[rows, K] * B[expert(row)][N, K]^T      bf16 in and out, fp32 accumulation
//
// Rows are in slot order: every expert's rows are padded to multiples of 128, `expert_rows` is the
// prefix sum of padded rows. The number of row blocks and the expert of each are read on the
// device, so a captured launch stays right when the routing changes.
//
// With `slack`, a half row block of 64 rows of which none holds anything is neither read nor multiplied, and its rows
// of D are not written. Where some hold something, the padding behind them is not read, but multiplied as zeros, and
// D is zero there; forms of mma.sync, and those that gather, multiply what is there. Transposed variants read,
// multiply and write rows up to the next multiple of 16 (of tiles of two row blocks at least 32), and none behind.
//
// A variant that gathers reads row a_rows[i] of A for row i of D. Entries of padding rows name any row
// of A that nobody writes meanwhile.
#pragma once

#include <cuda.h>

#include <cstdint>
#include <string>

#include "gemm_variants.hpp"

namespace fusescope::kernels {

struct ClockStamp;

// Travels inside the kernel's one __grid_constant__ aggregate: the copy engine reads the tensor
// maps through the parameter's address.
struct GroupedGemmArgs {
  // Not of variants that gather: the first is [halves, 64, K], box 64 x 64. Transposed: [rows_capacity, K], the
  // box of entry i 16 (i + 1) x 64.
  CUtensorMap a[kMostSteps];
  CUtensorMap b;                    // [experts, N, K], box 64 x block_n / b_boxes
  CUtensorMap d[kMostSteps];        // [rows_capacity, N or N / 2], box 64 x 64; transposed: as of A
  const std::int32_t* expert_rows;  // [experts + 1] on the device
  std::int32_t experts;
  std::int32_t n_tiles;            // tiles per row block; also the signals that a row block gets
  std::int32_t k_steps;            // ring stages per tile
  std::int32_t d_cols;             // columns of D
  std::int32_t up_offset;          // fused: first row of `up` in B (= N / 2)
  std::int32_t column_groups = 1;  // ranges of N tiles, done one after the other (TileOrder)
  std::int32_t block_group;   // row blocks of one expert whose N tiles are interleaved, at least 1
  const std::int32_t* slack;  // [row blocks] on the device: empty rows at its end; null: none
  std::uint32_t* next_tile;   // on the device; null: round robin (Schedule)
  ClockStamp* clock;          // the plain kernel's SM clock goes here; may be null
  // Of variants that gather.
  const std::int32_t* a_rows;  // [row blocks * 128] on the device: row of A
  const unsigned char* a_base;
  std::uint32_t a_row_units;  // a row of A, in units of 16 bytes
};

// Shapes and device pointers of one grouped GEMM.
struct GroupedGemmDesc {
  std::int64_t rows_capacity = 0;  // rows that D has room for, and A, unless it is gathered from
  std::int64_t n = 0;              // rows of B per expert (fused: gate and up together, 2I)
  std::int64_t k = 0;
  int experts = 0;
  const void* a = nullptr;
  const void* b = nullptr;
  void* d = nullptr;
  const std::int32_t* expert_rows = nullptr;
  const std::int32_t* slack = nullptr;  // may be null
  // Tiles are dealt out by this counter if there is one: zero before the first launch, zero again
  // after each that ran to its end. Its owner clears it after an aborted one.
  std::uint32_t* next_tile = nullptr;
  int column_groups = 1;                 // divides the number of N tiles
  const std::int32_t* a_rows = nullptr;  // variants that gather: [rows_capacity], row of A
};

// Empty if the variant can run the shape; else the rule that it breaks, in words.
std::string why_unsupported(const GroupedGemmDesc& desc, const GemmVariant& variant);

// Encodes the tensor maps. Throws std::invalid_argument with why_unsupported's words, or
// std::runtime_error if the driver refuses.
GroupedGemmArgs make_grouped_gemm_args(const GroupedGemmDesc& desc, const GemmVariant& variant);

}  // namespace fusescope::kernels
