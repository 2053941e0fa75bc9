#pragma once
// kernels/gemm/gemm_schedule.cuh: tiles have numbers in slot order. A worker begins with its own number; the
// next come round robin, or from a counter.

#include "protocol/layer/gemm.hpp"

namespace fusescope::protocol {

struct TileJob {
  int row_block, n_tile, expert;
  int halves;  // of the row block that hold rows
};

class TileSchedule {
 public:
  explicit TileSchedule(const GemmCall& call);

  // False behind the last tile.
  bool find(int tile, TileJob& job) const;

 private:
  const ScheduleTables& tables_;
  int row_block_, half_empty_, n_tiles_, group_, tiles_;
};

// What the schedule is found from.
void read_schedule(const Thread& thread, const GemmCall& call);

// The number of the worker's next tile. A number behind the last tile ends the worker: it asks no more, so that
// all together ask as often as there are tiles.
Task next_tile(Thread& thread, const GemmCall& call, int& tile);

}  // namespace fusescope::protocol
