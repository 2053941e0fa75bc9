#pragma once
// The coroutines of the model, each written as the device runs it. One file per kernel.

#include "engine/sim/world.hpp"

namespace fusescope::engine::sim {

// iteration.cpp, serial_layer.cpp: one rank's stream, from the ids exchange to its last phase.
Task run_fused_layer(Rank& rank);
Task run_serial_layer(Rank& rank);

// stream_phase.cpp: what both streams are made of.
Task phase(Rank& rank, Kind kind, double nanoseconds, int index = -1);
Task meet(Rank& rank, Kind kind, Rendezvous& rendezvous, int index = -1);
// Ids exchange, schedule build and what is left of the copy-in, in one kernel.
Task prologue(Rank& rank);
Task launch_gap(Rank& rank);

// A kernel as the stream sees it: it ends with the last of its blocks. They start together or, where kernels
// overlap, each when it gets an SM.
void begin_kernel(Rank& rank, Stage stage, int blocks);
Task get_sm(Rank& rank, Stage stage, int block);
// Where kernels overlap, a block ends after the kernel before.
Task end_after_kernel_before(Rank& rank, Stage stage);
void end_block(Rank& rank, Stage stage);
// Until all blocks have ended; `begin`: of the kernel's slice.
Task end_of_kernel(Rank& rank, Stage stage, Time begin);

// gemm_tile.cpp: one tile of either GEMM, main loop and epilogue.
struct Gemm {
  const TileCosts& costs;
  std::vector<double>& weights;  // what of it lies in the cache: [expert, N tile],
  std::vector<double>& rows;     // input [row block],
  std::vector<double>& output;   // output [row block]
};
Gemm gemm_1(Rank& rank);
Gemm gemm_2(Rank& rank);
int tiles(const Rank& rank, const TileCosts& costs);
// A tile's rows; its N tile is the rest of its number.
const RowTile& rows_of(const Rank& rank, const TileCosts& costs, int tile);
// One more N tile of these row blocks is done.
void count_tile(Rank& rank, std::vector<FillCounter>& counters, const RowTile& rows);
// The tile that a worker of so many takes behind this one.
int tile_after(Rank& rank, Stage stage, int tile, int workers);
Task run_tile(Rank& rank, Gemm gemm, TrackId track, int tile);

// dispatch_gemm.cpp
void start_dispatch_gemm(Rank& rank);
// Issues one token's pull over a block's copy path; returns when its row is in shared memory [ns].
double pull_row(Rank& rank, Server& block, int token, double now);
// Issues the stores of one token, if it has any; returns when the writes are complete [ns].
double store_row(Rank& rank, Server& block, int token, double now);

// gemm_combine_push.cpp
void start_gemm_combine_push(Rank& rank);
// One resident block that claims jobs until none is left; `block` of the kernel.
Task job_block(Rank& rank, TrackId track, int block);

// final_reduce.cpp
void start_final_reduce(Rank& rank);

}  // namespace fusescope::engine::sim
