// A GEMM tile. Operands come from memory unless they are in the cache; the main loop asks for them step
// by step, so that a tile shares memory's bandwidth with everything else that runs, and slows down with it.
#include <algorithm>

#include "engine/sim/kernels.hpp"

namespace fusescope::engine::sim {

Gemm gemm_1(Rank& rank) {
  return {rank.world.costs.gemm_1, rank.weights_1, rank.gathered, rank.activated};
}

Gemm gemm_2(Rank& rank) {
  return {rank.world.costs.gemm_2, rank.weights_2, rank.activated, rank.partials};
}

int tiles(const Rank& rank, const TileCosts& costs) {
  return static_cast<int>(rank.row_tiles.size()) * costs.n_tiles;
}

const RowTile& rows_of(const Rank& rank, const TileCosts& costs, int tile) {
  return rank.row_tiles[static_cast<std::size_t>(tile / costs.n_tiles)];
}

void count_tile(Rank& rank, std::vector<FillCounter>& counters, const RowTile& rows) {
  for (int block = rows.first; block <= rows.last(); ++block) {
    counters[static_cast<std::size_t>(block)].add(rank.world.scheduler,
                                                  us(rank.world.profile.poll_latency));
  }
}

int tile_after(Rank& rank, Stage stage, int tile, int workers) {
  const TileCounter counter = rank.world.config.tile_counter;
  const bool second = stage == Stage::gemm_combine_push;
  const bool dealt = counter == TileCounter::both || (counter == TileCounter::kernel_2 && second);
  return dealt ? workers + rank.next_tile[second ? 1 : 0]++ : tile + workers;
}

Task run_tile(Rank& rank, Gemm gemm, TrackId track, int tile) {
  Scheduler& scheduler = rank.world.scheduler;
  Recorder& recorder = rank.world.recorder;
  const TileCosts& costs = gemm.costs;
  const RowTile rows = rows_of(rank, costs, tile);
  const double row_blocks = costs.row_blocks_of(rows);
  const double step_ns =
      costs.step * costs.step_of(rows) + costs.copy * costs.copied_blocks_of(rows);
  const int row_block = rows.first;
  const int n_tile = tile % costs.n_tiles;
  const double scale = rank.world.costs.gemm_memory_scale;
  const double noise = rank.noise();

  const Time begin = scheduler.now();
  const std::size_t weights =
      static_cast<std::size_t>(rank.expert_of_row_block[row_block]) * costs.n_tiles + n_tile;
  double bytes = 0;
  bytes += rank.memory.touch(gemm.weights, weights) ? 0 : costs.weight_bytes;
  bool in_cache = true;
  for (int block = rows.first; block <= rows.last(); ++block) {
    in_cache &= rank.memory.touch(gemm.rows, static_cast<std::size_t>(block));
  }
  bytes += in_cache ? 0 : costs.row_bytes * row_blocks;
  for (int step = 0; step < costs.steps; ++step) {
    const double now = static_cast<double>(scheduler.now());
    const double computed = now + (step_ns + (step == 0 ? costs.fill : 0)) * noise;
    const double loaded = bytes > 0 ? rank.memory.move(now, bytes, scale) : now;
    co_await scheduler.until(rounded(std::max(computed, loaded)));
  }
  const Time computed = scheduler.now();
  recorder.slice(track, Kind::mainloop, begin, computed, {.row_block = row_block, .index = n_tile});

  const double stored =
      rank.memory.move(static_cast<double>(computed), costs.store_bytes * row_blocks, scale);
  for (int block = rows.first; block <= rows.last(); ++block) {
    rank.memory.touch(gemm.output, static_cast<std::size_t>(block));
  }
  const double end =
      std::max(static_cast<double>(computed) + costs.epilogue * row_blocks * noise, stored);
  co_await scheduler.until(rounded(end));
  recorder.slice(track, Kind::epilogue, computed, scheduler.now(),
                 {.row_block = row_block, .index = n_tile});
}

}  // namespace fusescope::engine::sim
