#pragma once
// Schedule tables: the routing as the two kernels want it (DESIGN: "Schedule tables").
// Two builders of the same tables: a plain loop that is obviously right, and a vectorised one.

#include <cstdint>
#include <vector>

#include "layer/config.hpp"
#include "layer/routing.hpp"
#include "layer/shape.hpp"

namespace fusescope {

// The tables of one rank. Ranks differ only in the padding of token_of_slot, and where `slot_order` is
// relative to the rank.
struct ScheduleTables {
  std::vector<std::int32_t> expert_rows;  // [E+1] prefix sum of padded rows
  std::vector<std::int32_t> slots;        // [R*T, K] slot of each hit
  std::vector<std::int32_t> pull_order;   // [R*T] tokens by smallest slot
  std::vector<std::int32_t> job_order;    // [R*T] tokens by largest slot
  std::vector<std::int32_t> slack;        // [row blocks] rows that no hit fills
  // [rows] token of the hit in each slot. Padding names the rank's first own token, which is there before
  // any other: what gathers rows by this table may read it at any time.
  std::vector<std::int32_t> token_of_slot;

  int row_blocks() const { return static_cast<int>(slack.size()); }
  int rows() const { return expert_rows.empty() ? 0 : expert_rows.back(); }
  bool operator==(const ScheduleTables&) const = default;
};

// Experts lie in id order; within an expert the hits lie in `slot_order`:
//   by_token             by global token id
//   interleave_sources   by (index within the source rank, source rank)
//   rotate_from_self     by global token id, starting at this rank's own tokens and wrapping around
// Ties in pull_order and job_order cannot occur, since slots are distinct.
// `row_block`: rows of a block. The kernels have one size; the protocol search takes smaller ones.
ScheduleTables build_tables_golden(const Shape& shape, const Routing& routing, SlotOrder slot_order,
                                   int rank, int row_block = kRowBlock);

// The same tables through Thrust, on the host systems. The source compiles for CUDA too.
enum class ThrustSystem { cpp, omp };
ScheduleTables build_tables_thrust(const Shape& shape, const Routing& routing, SlotOrder slot_order,
                                   int rank, ThrustSystem system);

// Expert of each row block, [row blocks].
std::vector<std::int32_t> experts_of_row_blocks(const ScheduleTables& tables);

}  // namespace fusescope
