// Storer role of the mma.sync mainloop: one thread copies the staged chunks of both halves to global memory,
// and signals finished tiles.
#pragma once

#include <cstdint>

#include "gemm_args.hpp"
#include "gemm_hooks.cuh"
#include "gemm_smem.cuh"

namespace fusescope::kernels {

template <GemmVariant V, class Signal, class Probe>
__device__ inline void mma_store_tiles(const GroupedGemmArgs& args, GemmSmem<V> smem,
                                       Signal& signal, Probe& probe) {
  constexpr int kChunks = staged_chunks(V);
  GemmControl<V>& control = smem.control();
  std::uint32_t parity = 0;  // bit h: half h's; a half without rows stages nothing

  for (;;) {
    wait_phase(control.staged[0][0], parity & 1);
    const TileHeader tile = control.chunk_tile[0][0];
    if (tile.row_block == kStop)
      break;
    const int halves = tile.halves();
    for (int half = 0; half < halves; ++half) {
      for (int chunk = 0; chunk < kChunks; ++chunk) {
        wait_phase(control.staged[half][chunk], parity >> half & 1);
        const int column = tile.n_tile() * V.out_cols() + chunk * kStagedCols;
        const int row = tile.row_block * kBlockRows + half * kConsumerRows;
        if (column < args.d_cols) {
          ptx::cp_async_bulk_tensor(ptx::space_global, ptx::space_shared, &args.d[0], {column, row},
                                    smem.chunk(half, chunk));
        }
      }
      parity ^= 1u << half;
    }
    ptx::cp_async_bulk_commit_group();
    // The chunks go back to the consumers when the copy engine has read them, long before they stage the
    // next tile.
    ptx::cp_async_bulk_wait_group_read(ptx::n32_t<0>());
    for (int half = 0; half < halves; ++half) {
      for (int chunk = 0; chunk < kChunks; ++chunk)
        arrive(control.drained[half][chunk]);
    }
    if constexpr (kIsSignalling<Signal>) {
      // Completion of the writes, not of the reads: what follows publishes the tile. The proxy fence orders
      // the bulk stores before the generic release inside the signal.
      ptx::cp_async_bulk_wait_group(ptx::n32_t<0>());
      ptx::fence_proxy_async(ptx::space_global);
      signal.done(tile.row_block, tile.n_tile());
      probe.record(ProbePoint::kStored, tile.row_block, tile.n_tile());
    }
  }
  // Whoever reuses the shared memory, or reads D, comes after the last write.
  ptx::cp_async_bulk_wait_group(ptx::n32_t<0>());
}

}  // namespace fusescope::kernels
