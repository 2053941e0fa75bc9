#pragma once
// kernels/gemm/gemm_schedule.cuh: tiles have numbers in slot order. A worker begins with its own number; the
// next come round robin, or from a counter.

#include "protocol/layer/gemm.hpp"

namespace fusescope::protocol {

struct TileJob {
  int row_block, n_tile, expert;
  int halves;  // of row blocks that hold rows, from the first on
};
// Of all N tiles.
int row_tiles(const Scenario& scenario, const ScheduleTables& tables);

class TileSchedule {
 public:
  explicit TileSchedule(const GemmCall& call);

  // False behind the last tile.
  bool find(int tile, TileJob& job) const;

 private:
  const Scenario& s_;
  const ScheduleTables& tables_;
  int half_empty_, tiles_;
};

// What the schedule is found from.
void read_schedule(const Thread& thread, const GemmCall& call);

// The number of the worker's next tile. A number behind the last tile ends the worker: it asks no more, so that
// all together ask as often as there are tiles.
Task next_tile(Thread& thread, const GemmCall& call, int& tile);

}  // namespace fusescope::protocol
