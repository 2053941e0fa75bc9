// The final reduce: on the source rank, chunk by chunk, wait for every sender's watermark and sum the
// planes in rank order. Every block sums its share of each chunk's rows.
#include <algorithm>

#include "engine/sim/kernels.hpp"

namespace fusescope::engine::sim {
namespace {

Task reduce_block(Rank& rank, int block, int blocks) {
  World& world = rank.world;
  Scheduler& scheduler = world.scheduler;
  co_await get_sm(rank, Stage::final_reduce, block);
  const int ranks = world.shape.ranks;
  const int chunks = world.config.watermark_chunks;
  const TrackId track = world.recorder.add_track(rank.id, Stage::final_reduce, Role::reduce, block);
  // R planes in, one out; a block's share of a chunk may be less than a row.
  const double bytes = (ranks + 1) * world.costs.row_bytes * world.shape.tokens_per_rank /
                       static_cast<double>(chunks) / blocks;
  for (int chunk = 0; chunk < chunks; ++chunk) {
    for (int sender = 0; sender < ranks; ++sender) {
      const Time begin = scheduler.now();
      co_await rank.watermark(sender, chunk).opened();
      world.recorder.slice(track, Kind::reduce_wait, begin, scheduler.now(),
                           {.index = chunk, .peer = sender});
    }
    const Time begin = scheduler.now();
    const double now = static_cast<double>(begin);
    const double own = now + bytes / world.profile.sm_job_read * rank.noise();
    const double end = std::max(own, rank.memory.move(now, bytes));
    co_await scheduler.until(rounded(end) + us(world.profile.job_latency));
    world.recorder.slice(track, Kind::reduce, begin, scheduler.now(), {.index = chunk});
  }
  co_await end_after_kernel_before(rank, Stage::final_reduce);
  end_block(rank, Stage::final_reduce);
}

}  // namespace

void start_final_reduce(Rank& rank) {
  World& world = rank.world;
  const int blocks = std::min(world.sms(), world.shape.tokens_per_rank);
  begin_kernel(rank, Stage::final_reduce, blocks);
  for (int block = 0; block < blocks; ++block) {
    world.scheduler.spawn(reduce_block(rank, block, blocks));
  }
}

}  // namespace fusescope::engine::sim
