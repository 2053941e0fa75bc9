#pragma once
// The layer's memory on the machine: what each rank and each block owns, under the kernels' names.

#include <array>
#include <vector>

#include "protocol/machine.hpp"
#include "protocol/scenario.hpp"

namespace fusescope::protocol {

// The GEMM's block (kernels/gemm/gemm_smem.cuh), made small.
inline constexpr int kStages = 2;
inline constexpr int kConsumers = 2;
inline constexpr int kConsumerWarps = 2;  // of a group, where they are told apart
inline constexpr int kMostChunks = 2;     // staged output of a group
inline constexpr int kMostLentChunks = 1;
inline constexpr int kRoomRow = kStages + kMostChunks;  // of a token that is fetched beside tiles
inline constexpr int kJoinSlots = 8;
inline constexpr int kMostJobGroups = 3;
inline constexpr int kMostTokensPerBlock = 3;  // pushers, in gemm_reduce_scatter
inline constexpr int kMostPushRows = 2;
inline constexpr int kBlockThreads = 384;
// The jobs' warpgroup (kernels/job_memory.cuh). A piece is one N tile's columns of a token's K rows.
inline constexpr int kJobThreads = 128;
inline constexpr int kJobRows = 2;
inline constexpr int kJobPieces = 2;
inline constexpr int kSummingWarps = 2;
inline int job_columns(const Scenario& s) {
  return kSummingWarps * s.n_tiles();  // the warps share the columns of a piece
}
// Named barriers of a block.
inline constexpr int kBeginBarrier = 0;  // kernel 2
inline constexpr int kGemmBarrier = 1;
inline constexpr int kJoinBarrier = 2;
inline constexpr int kFirstJobBarrier = 3;
inline constexpr int kFirstConsumerBarrier = kFirstJobBarrier + kMostJobGroups;
// Behind them those of the consumers' warps, __syncwarp.
inline constexpr int kFirstWarpBarrier = kFirstConsumerBarrier + kConsumers;
inline constexpr int kNamedBarriers = kFirstWarpBarrier + kConsumers * kConsumerWarps;

// The prologue's cluster, whose blocks are one thread each: they send a rank's ids in turn, and each takes those of
// hits that follow each other.
inline constexpr int kClusterBlocks = 2;
inline constexpr int kIdsOfRank = 4;

// Position in a ring, and the parity of the slot's current use (gemm_smem.cuh, job_memory.cuh).
struct RingCursor {
  int depth;
  int slot = 0;
  std::uint32_t parity = 0;

  void advance() {
    if (++slot == depth) {
      slot = 0;
      parity ^= 1;
    }
  }
};

inline constexpr int kBarrierPoints = 3;
enum class BarrierPoint { entry = 0, copied = 1 };

// Shared memory of one warpgroup that runs jobs.
struct JobPlaces {
  CellId rows;     // [kJobRows][columns]: what each summing warp writes of each piece
  CellId pieces;   // [kJobPieces][topk + 1]: the rows, then their weights
  CellId control;  // stands for the barriers' own memory
  CellId piece_tokens, row_tokens;
  MbarrierId full, empty, summed, drained;
};

// Rows of a tile, at most.
inline int stage_rows(const Scenario& s) {
  return s.most_halves() * s.row_block / kConsumers;
}
// Shared memory is rows: `stage_rows` cells for the rows of a tile, and one for the tile's weights, at a
// distance such that ring stages and staged chunks overlap with all warpgroups' JobPlaces, as they do on
// the device. Row slots overlap with both.
struct BlockPlaces {
  CellId smem, stage_tiles, chunk_tiles, lenders;
  CellId next, gave_up, fetch_state;
  int row_pitch;
  MbarrierId full, empty, staged, drained, landed;
  MbarrierId prepared, found, asked, fetched;
  MbarrierId rows_landed;  // of each stage, where the GEMM gathers
  std::array<JobPlaces, kMostJobGroups> jobs;
  BarrierId named;
  WordId halves;
  int cells;  // from `smem` on: everything that a new block finds undefined
};

struct RankPlaces {
  // Host and input
  CellId input, own_ids, own_weights, host_ids, host_tables, diagnosis, output;
  // Written by peers. ids: [R], not by the prologue; weights: [R*T]
  CellId ids, weights, tokens, staging;
  WordId ids_flags, barrier_flags, watermarks;  // watermarks: [R][chunks]
  WordId stamped_ids;                           // [R][kIdsOfRank], by the prologue
  // This rank's own
  CellId expert_rows, slots, pull_order, job_order, slack, token_of_slot, iteration;
  CellId all_tokens;                       // [token]; this rank's own are its `tokens`
  CellId gathered, gate_up, act, partial;  // gate_up, act, partial: [row block][n tile][row]
  WordId arrivals, computed, done, begun, dispenser, resident, copied, pushed, abort, claimed;
  WordId next_tile;   // [2], of both kernels
  BarrierId cluster;  // of the prologue
  // By SM. Where kernels overlap, kernel 2's blocks have places of their own behind these; short-lived
  // blocks do, too.
  std::vector<BlockPlaces> blocks;
};

// Adds everything to the machine. `row_blocks`: the most that any rank has in any iteration.
std::vector<RankPlaces> add_places(Machine& machine, const Scenario& scenario, int row_blocks);

}  // namespace fusescope::protocol
