#pragma once
// The grouped GEMM of one block (kernels/gemm): producer, two consumers and two storers around a ring of
// stages, and a scheduler, or where rows are gathered a relay, with its hooks: a gate in front of a row block, a
// signal behind a tile. A kernel of another layer uses it by filling in a GemmCall.

#include "protocol/layer/layer.hpp"

namespace fusescope::protocol {

struct GemmCall {
  Layer& layer;
  const Round& round;
  const BlockPlaces& block;
  int rank;
  int worker, workers;
  int which;  // 1 or 2: whose weights
  int k_steps;
  CellId a;               // first row of the operand
  int a_per_block;        // cells from one row block to the next
  int a_per_step;         // cells from one k step to the next
  bool gathers = false;   // the operand's rows are everybody's tokens, and the tables say which
  CellId d;               // first row of the output, [row block][n tile][row]
  WordId next_tile = -1;  // counter that deals out tiles; -1 = round robin
  bool activates;         // the epilogue does
  bool a_has_padding;     // padding rows of the operand hold nothing
  bool halves;            // the GEMM knows slack: empty second halves of row blocks are left out
  WordId gate = -1;       // one word per row block; -1 = none
  std::uint64_t open_at = 0;
  int row_slots = -1;       // that fetch before the first tile; -1 = the gate prepares nothing
  int rest_from = -1;       // in pull order: tokens that blocks fetch beside their tiles; -1 = none
  WordId signal = -1;       // one word per row block; -1 = none
  bool loses_tile = false;  // a fault: row block 0's first tile is not signalled
};

// A consumer group's output chunks, each a row of its half of a tile (kernels/gemm/gemm_variants.hpp): those that
// are there for output alone, those that a tile's last stage lends, and both.
int staged_chunks(bool activates);
int lent_chunks(const Scenario& scenario, bool activates);
int all_chunks(const Scenario& scenario, bool activates);
// One thread stands for all of a group's warps, but where one writes into what another may still be reading.
int consumer_warps(const Scenario& scenario, bool activates);
// Row slots are lanes of these: `consumer` counts them through both groups, and each has a slot in turn.
int consumers(const GemmCall& call);
int slots_of(const GemmCall& call, int consumer);
// A warp's lanes meet behind their slots: one of them with this call, of those that the model tells apart.
Meeting meet_warp(Thread& thread, const GemmCall& call, int consumer);

// By the block's first thread, before all meet.
void init_gemm(Thread& thread, const GemmCall& call);
Task schedule_tiles(Thread& thread, GemmCall call);
Task produce_tiles(Thread& thread, GemmCall call);
// Instead of both where rows are gathered; hands its rows, which another proxy reads, on to the consumers.
Task gather_tiles(Thread& thread, GemmCall call);
Task relay_stages(Thread& thread, GemmCall call);
Task consume_tiles(Thread& thread, GemmCall call, int group, int warp);
Task store_tiles(Thread& thread, GemmCall call, int group);

// Threads that each role stands for at the block's barriers.
inline constexpr int kConsumerThreads = 128;  // a group
inline constexpr int kProducerThreads = 32;
inline constexpr int kSchedulerThreads = 32;  // or the relay
inline constexpr int kStorerThreads = 32;

}  // namespace fusescope::protocol
