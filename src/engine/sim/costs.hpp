#pragma once
// What each step of the layer costs on a device: a profile's numbers, multiplied out for one shape and
// config into bytes and nanoseconds. Pure arithmetic; the model's files hold no numbers of their own.

#include "engine/sim/profile.hpp"
#include "layer/config.hpp"
#include "layer/problem.hpp"
#include "layer/row_tiles.hpp"
#include "layer/shape.hpp"

namespace fusescope::engine::sim {

// One tile of a GEMM: fill, then K in steps, then the epilogue. What grows with a tile's rows is that of a row
// block, kRowBlock rows.
struct TileCosts {
  int n_tiles = 0;          // N tiles of a row block
  int columns = 0;          // of an N tile
  int row_step = 0;         // rows that a tile costs are rounded up to; 0: to whole row blocks
  int steps = 0;            // of the main loop: how often it asks memory for operands
  double fill = 0;          // [ns]
  double step = 0;          // [ns] of a row block's products
  double copy = 0;          // [ns] that a row block's rows add to a step where they are gathered
  double weight_bytes = 0;  // a step reads of its expert's weights ...
  double row_bytes = 0;     // ... and of its row block
  double epilogue = 0;      // [ns]
  double store_bytes = 0;

  // Of a row block's bytes and epilogue, what a tile has; more than 1 if it has several row blocks.
  double row_blocks_of(const RowTile& tile) const;
  // The same of a step's time, which has a floor.
  double step_of(const RowTile& tile) const;
  // What is copied of its rows where they are gathered: halves of row blocks, or rows in 32s.
  double copied_blocks_of(const RowTile& tile) const;
};

struct Costs {
  RowGrouping grouping;  // of the row blocks into tiles
  TileCosts gemm_1;
  TileCosts gemm_2;
  double gemm_memory_scale = 0;    // of DeviceMemory::move, for weight tiles
  double gather_memory_scale = 0;  // for row gathers and scatters

  double row_bytes = 0;  // one token's row, H bf16
  // One SM moving one row [ns].
  double pull_remote_row = 0, pull_local_row = 0, store_row = 0, read_row = 0, push_row = 0;
  // A link moving one row, per direction [ns].
  double link_pull_row = 0, link_push_row = 0;
  // A line of the emulated link (link_gbps) moving one row [ns]; 0 = there is none.
  double line_row = 0;
  // What lies between all GPUs, moving one row [ns].
  double fabric_row = 0;

  double memory_rate = 0;  // [bytes/ns] what a copy reaches
  double cache_bytes = 0;

  // Stream phases [ns].
  double schedule = 0, copy_in = 0, launch_gap = 0;
  double ids_exchange = 0;
  double copy_in_left = 0;  // schedule fused: of the copy-in, behind the schedule build
  double all_gather = 0, reduce_scatter = 0, scatter_rows = 0, combine = 0;
  double activation(double rows) const { return activation_floor + rows * activation_row; }
  double activation_floor = 0, activation_row = 0;
};

// What legality asks of the profile's device.
DeviceLimits limits_of(const Profile& profile);

Costs make_costs(const Profile& profile, const Shape& shape, const Config& config, int rows);

}  // namespace fusescope::engine::sim
