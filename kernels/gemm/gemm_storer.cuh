// Storer role: one thread per consumer warpgroup copies staged chunks to global memory, so that no
// consumer ever waits for a write to complete, and signals finished tiles.
#pragma once

#include <cuda/atomic>

#include <cstdint>

#include "gemm_args.hpp"
#include "gemm_hooks.cuh"
#include "gemm_smem.cuh"
#include "staged_chunks.cuh"

namespace fusescope::kernels {

// The two storers of a block finish a tile's halves independently; the second one to finish signals
// the tile. Tiles with one half are signalled by its storer alone, and not counted here: the other
// never hears of them. Tile i of the rest uses slot i % kJoinSlots: the storers are never kJoinSlots
// such tiles apart, because one takes at least one ring stage, which both consumers must release, and
// at least one staged chunk.
template <GemmVariant V>
__device__ inline bool second_to_store(GemmControl<V>& control, int whole_tile) {
  const cuda::atomic_ref<std::uint32_t, cuda::thread_scope_block> halves(
      control.halves_stored[whole_tile % kJoinSlots]);
  // acq_rel: orders the first storer's completed writes before the second's signal.
  return halves.fetch_add(1, cuda::memory_order_acq_rel) % 2 == 1;
}

template <GemmVariant V, class Signal, class Probe>
__device__ inline void store_tiles(const GroupedGemmArgs& args, GemmSmem<V> smem, Signal& signal,
                                   Probe& probe, int group) {
  static_assert(V.stages + 2 * all_chunks(V) < kJoinSlots);
  StagedChunks<V> chunks(smem, group);

  int whole_tiles = 0;
  for (;;) {
    TileHeader tile{};
    for (int chunk = 0; chunk < chunks_of_tile(V); ++chunk) {
      tile = chunks.next();
      if (tile.row_block == kStop)
        return;
      const int column = tile.n_tile() * V.out_cols() + chunk * kStagedCols;
      const int row = tile.row_block * kBlockRows + group * kConsumerRows;
      if (column < args.d_cols) {
        ptx::cp_async_bulk_tensor(ptx::space_global, ptx::space_shared, &args.d[0], {column, row},
                                  chunks.bytes());
      }
      chunks.pass();
    }
    chunks.end_tile();
    if constexpr (kIsSignalling<Signal>) {
      chunks.await_writes();
      if (tile.halves() == 1 || second_to_store(smem.control(), whole_tiles++)) {
        signal.done(tile.row_block, tile.n_tile());
        probe.record(ProbePoint::kStored, tile.row_block, tile.n_tile());
      }
    }
  }
}

}  // namespace fusescope::kernels
