#pragma once
// What the roles of a GEMM's block hand to each other (kernels/gemm/gemm_smem.cuh): which tile a stage or
// a staged chunk belongs to, and where the chunk lies.

#include "protocol/layer/gemm.hpp"

namespace fusescope::protocol {

// What stands in shared memory of a tile: the lowest bit says that only the first consumer has rows.
struct TileHeader {
  int row_block, n_tile;
  int halves;  // of the row block that hold rows

  std::uint64_t word() const {
    return static_cast<std::uint64_t>(row_block) * 64 + static_cast<std::uint64_t>(n_tile) * 2 +
           (halves == 1 ? 1 : 0);
  }
  static TileHeader of(std::uint64_t word) {
    return {static_cast<int>(word / 64), static_cast<int>(word % 64 / 2), word % 2 == 1 ? 1 : 2};
  }
};
// In place of a header: the role ends.
inline constexpr std::uint64_t kStop = ~0ull;

// Rows of one consumer.
inline int half_rows(const Scenario& s) {
  return s.row_block / kConsumers;
}
// A chunk of a consumer group's output: staged in a row behind the ring, in the group's half of it.
inline CellId staged_cell(const GemmCall& c, int group, int slot) {
  return c.layer.smem_row(c.block, kStages + slot).first + group * half_rows(c.layer.s);
}

}  // namespace fusescope::protocol
