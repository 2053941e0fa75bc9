#pragma once
// Schedule tables in device memory, rebuilt on a stream: what the cuda engine calls once per
// iteration, inside its graph. Sizes here are bounds that the shape fixes; how many row blocks are
// real is known only on the device (expert_rows[E] / 128).

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "layer/config.hpp"
#include "layer/shape.hpp"

struct CUstream_st;  // cudaStream_t, without the toolkit's headers

namespace fusescope {

struct TableSizes {
  std::int32_t ranks = 0;
  std::int32_t tokens_per_rank = 0;
  std::int32_t experts = 0;
  std::int32_t topk = 0;

  explicit TableSizes(const Shape& shape)
      : ranks(shape.ranks),
        tokens_per_rank(shape.tokens_per_rank),
        experts(shape.experts),
        topk(shape.topk) {}

  constexpr std::int32_t tokens() const { return ranks * tokens_per_rank; }
  constexpr std::int32_t hits() const { return tokens() * topk; }
  // sum of ceil(hits of e / 128) <= hits / 128 + E
  constexpr std::int32_t max_row_blocks() const { return hits() / kRowBlock + experts; }
  constexpr std::int32_t max_rows() const { return max_row_blocks() * kRowBlock; }
};

// Where the tables go, as in ScheduleTables. Entries of slack beyond the real row blocks are 128,
// of token_of_slot as in padding, of row_block_experts -1.
struct TablePointers {
  std::int32_t* expert_rows = nullptr;        // [E+1]
  std::int32_t* slots = nullptr;              // [R*T, K]
  std::int32_t* pull_order = nullptr;         // [R*T]
  std::int32_t* job_order = nullptr;          // [R*T]
  std::int32_t* slack = nullptr;              // [max_row_blocks]
  std::int32_t* token_of_slot = nullptr;      // [max_rows]
  std::int32_t* row_block_experts = nullptr;  // [max_row_blocks], or null: not wanted
};

// Bytes of device memory that one build works in. The workspace may be shared by builds on one
// stream.
std::size_t table_workspace_bytes(const TableSizes& sizes);

// Enqueues the build on `stream`: no synchronisation, no allocation, capturable. `experts` is [R*T,
// K] on the device, ids in [0, E) and distinct within a token. `workspace` has
// table_workspace_bytes(sizes), aligned to 256. Throws std::bad_alloc if Thrust asks for more than
// that, std::runtime_error on a CUDA error. Only in builds with CUDA (fusescope_layer_cuda).
void build_tables_on_stream(CUstream_st* stream, const TableSizes& sizes,
                            const std::int32_t* experts, SlotOrder slot_order, int rank,
                            const TablePointers& out, void* workspace);

}  // namespace fusescope
