// kernels/gemm/gemm_scheduler.cuh. The warp is one thread.
#include "protocol/layer/background_fetch.hpp"
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
  BackgroundFetch fetch(t, c);

  // Gates of both kernels look once at the abort word, in each thread: none opens after an earlier phase was aborted.
  const std::uint64_t stopped = co_await layer.aborted(t);
  bool gave_up = false;
  for (int tile = c.worker; !gave_up && schedule.find(tile, job); parity ^= 1) {
    bool open = false;
    co_await are_open(t, c, job, stopped != 0, open);
    t.write(c.block.next, NextTile{tile, open}.word(), c.round.stamp);
    t.arrive(c.block.found);
    co_await wait_asked(t, fetch, parity);
    gave_up = t.read(c.block.gave_up, c.round.stamp) != 0;
    if (!gave_up) {
      co_await next_tile(t, c, tile);
    }
  }
  if (!gave_up && !layer.has(Bug::end_not_found)) {
    t.write(c.block.next, kStop, c.round.stamp);
    t.arrive(c.block.found);
  }
  if (!layer.has(gave_up ? Bug::beside_left_with_producer : Bug::rest_left_with_last_tile)) {
    co_await finish(t, fetch);
  }
  t.leave_shared_memory();
}

}  // namespace fusescope::protocol
