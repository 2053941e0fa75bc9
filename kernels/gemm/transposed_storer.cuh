// Storer role of transposed variants: one thread per consumer warpgroup copies its columns' staged chunks to
// global memory, and the second to finish signals the tile, to each of its row blocks.
#pragma once

#include <cstdint>

#include "gemm_args.hpp"
#include "gemm_hooks.cuh"
#include "gemm_smem.cuh"
#include "gemm_storer.cuh"
#include "staged_chunks.cuh"

namespace fusescope::kernels {

template <GemmVariant V, class Signal, class Probe>
__device__ inline void store_transposed_tiles(const GroupedGemmArgs& args, GemmSmem<V> smem,
                                              Signal& signal, Probe& probe, int group) {
  constexpr int kColumns = V.out_cols() / kConsumerGroups;  // of a warpgroup
  constexpr int kParts = kColumns / staged_cols(V);
  constexpr int kStepsAtOnce = staged_rows(V) / kRowStep;
  StagedChunks<V> chunks(smem, group);

  for (int tiles = 0;; ++tiles) {
    TileHeader tile{};
    int steps = kStepsAtOnce;  // of the tile, once its first chunk is here
    for (int part = 0; part < kParts; ++part) {
      for (int first = 0; first < steps; first += kStepsAtOnce) {
        tile = chunks.next();
        if (tile.row_block == kStop)
          return;
        steps = steps_of(V, tile.rows());
        const int column = tile.n_tile() * V.out_cols() + group * kColumns + part * staged_cols(V);
        const int row = tile.row_block * kBlockRows + first * kRowStep;
        if (column < args.d_cols) {
          ptx::cp_async_bulk_tensor(ptx::space_global, ptx::space_shared,
                                    &args.d[min(steps - first, kStepsAtOnce) - 1], {column, row},
                                    chunks.bytes());
        }
        chunks.pass();
      }
    }
    chunks.end_tile();
    if constexpr (kIsSignalling<Signal>) {
      chunks.await_writes();
      if (second_to_store(smem.control(), tiles)) {
        // Before the signals: a wait for the first row block may end while the second is being signalled, and
        // must not seem to end before what it waited for.
        probe.record(ProbePoint::kStored, tile.row_block, tile.n_tile());
        for (int block = 0; block * kBlockRows < tile.rows(); ++block)
          signal.done(tile.row_block + block, tile.n_tile());
      }
    }
  }
}

}  // namespace fusescope::kernels
