// kernels/gemm/gemm_scheduler.cuh. The warp is one thread.
#include "protocol/layer/gemm_gate.hpp"
#include "protocol/layer/gemm_schedule.hpp"
#include "protocol/layer/gemm_tile.hpp"

namespace fusescope::protocol {

Task schedule_tiles(Thread& t, GemmCall c) {
  const Layer& layer = c.layer;
  read_schedule(t, c);
  const TileSchedule schedule(c);
  TileJob job{};
  std::uint32_t parity = 0;

  // Gates of both kernels look once at the abort word, in each thread: none opens after an earlier phase was aborted.
  const std::uint64_t stopped = co_await layer.aborted(t);
  for (int tile = c.worker; schedule.find(tile, job); parity ^= 1) {
    bool open = false;
    co_await is_open(t, c, job.row_block, stopped != 0, open);
    t.write(c.block.next, NextTile{tile, open}.word(), c.round.stamp);
    t.arrive(c.block.found);
    co_await t.wait_phase(c.block.asked, parity);
    if (t.read(c.block.gave_up, c.round.stamp) != 0) {
      co_return;
    }
    co_await next_tile(t, c, tile);
  }
  if (!layer.has(Bug::end_not_found)) {
    t.write(c.block.next, kStop, c.round.stamp);
    t.arrive(c.block.found);
  }
}

}  // namespace fusescope::protocol
