// Producer role: one warp walks the block's tiles in slot order and fills the ring. Its first lane
// asks the gate and issues the bulk tensor copies; all lanes together look up experts.
#pragma once

#include <cstdint>

#include "gemm_args.hpp"
#include "gemm_hooks.cuh"
#include "gemm_smem.cuh"

namespace fusescope::kernels {

struct TileCoord {
  int row_block;
  int n_tile;
};

// Tiles in slot order: all N tiles of a row block in a row, or of a pair of row blocks interleaved,
// so that the two blocks of one expert read the same weights at the same time.
__device__ inline TileCoord tile_coord(int tile, int row_blocks, const GroupedGemmArgs& args) {
  if (args.block_group == 1)
    return {tile / args.n_tiles, tile % args.n_tiles};
  const int per_group = 2 * args.n_tiles;
  const int first = tile / per_group * 2;
  const int within = tile % per_group;
  if (first + 1 == row_blocks)
    return {first, within};
  return {first + within % 2, within / 2};
}

// Expert that owns `row`, by the whole warp: each lane tests the end of one expert. Starts at an
// expert that is not behind the answer; empty experts end where they start and are passed over.
__device__ inline int expert_of_row(const GroupedGemmArgs& args, int row, int start) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  for (int base = start;; base += 32) {
    const int expert = base + lane;
    const bool ends_behind = expert >= args.experts || args.expert_rows[expert + 1] > row;
    const unsigned found = __ballot_sync(~0u, ends_behind);
    if (found != 0)
      return base + __ffs(static_cast<int>(found)) - 1;
  }
}

template <GemmVariant V>
class Producer {
 public:
  __device__ Producer(const GroupedGemmArgs& args, GemmSmem<V> smem)
      : args_(args), smem_(smem), control_(smem.control()) {}

  // Waits for the gate; false is abort. While it is shut, loads the weights of the first stages.
  template <class Gate>
  __device__ bool open(Gate& gate, const TileCoord& tile, int expert) {
    if constexpr (requires { gate.is_open(0); }) {
      if (gate.is_open(tile.row_block))
        return true;
      RingCursor<V.stages> ahead = cursor_;
      while (early_ < V.stages && early_ < args_.k_steps &&
             ptx::mbarrier_test_wait_parity(&control_.empty[ahead.slot], ahead.parity ^ 1)) {
        ptx::mbarrier_expect_tx(ptx::sem_relaxed, ptx::scope_cta, ptx::space_shared,
                                &control_.full[ahead.slot], b_stage_bytes(V));
        load_b(ahead.slot, early_, tile.n_tile, expert);
        ++early_;
        ahead.advance();
      }
    }
    return gate.wait(tile.row_block);
  }

  __device__ void load(const TileCoord& tile, int expert) {
    for (int k = 0; k < args_.k_steps; ++k) {
      const int slot = cursor_.slot;
      const bool early = k < early_;
      if (!early)
        wait_free(control_.empty[slot], cursor_.parity);
      // The header is a generic store; consumers read it after acquiring `full`, which the arrive
      // below releases.
      if (k == 0)
        control_.stage_tile[slot] = {tile.row_block, tile.n_tile};
      const int bytes = a_stage_bytes(V) + (early ? 0 : b_stage_bytes(V));
      ptx::mbarrier_arrive_expect_tx(ptx::sem_release, ptx::scope_cta, ptx::space_shared,
                                     &control_.full[slot], bytes);
      ptx::cp_async_bulk_tensor(ptx::space_cluster, ptx::space_global, smem_.a_stage(slot),
                                &args_.a, {k * V.block_k, tile.row_block * kBlockRows},
                                &control_.full[slot]);
      if (!early)
        load_b(slot, k, tile.n_tile, expert);
      cursor_.advance();
    }
    early_ = 0;
  }

  // Tells the consumers to leave, and does not return before every copy issued has landed: the
  // caller may reuse the shared memory.
  __device__ void stop() {
    if (early_ == 0)
      wait_free(control_.empty[cursor_.slot], cursor_.parity);
    control_.stage_tile[cursor_.slot] = {kStop, 0};
    arrive(control_.full[cursor_.slot]);
    RingCursor<V.stages> ahead = cursor_;
    for (int i = 0; i < early_; ++i, ahead.advance()) {
      if (i > 0)
        arrive(control_.full[ahead.slot]);
      wait_phase(control_.full[ahead.slot], ahead.parity);
    }
  }

 private:
  __device__ void load_b(int slot, int k, int n_tile, int expert) {
    if constexpr (V.epilogue == Epilogue::kSiluMul) {
      // Gate rows above, the matching up rows below: one wgmma then yields both factors.
      constexpr int kHalf = V.block_n / 2;
      const int row = n_tile * kHalf;
      copy_b(smem_.b_stage(slot), slot, k, row, expert);
      copy_b(smem_.b_stage(slot) + b_stage_bytes(V) / 2, slot, k, args_.up_offset + row, expert);
    } else {
      copy_b(smem_.b_stage(slot), slot, k, n_tile * V.block_n, expert);
    }
  }

  __device__ void copy_b(unsigned char* to, int slot, int k, int row, int expert) {
    ptx::cp_async_bulk_tensor(ptx::space_cluster, ptx::space_global, to, &args_.b,
                              {k * V.block_k, row, expert}, &control_.full[slot]);
  }

  const GroupedGemmArgs& args_;
  GemmSmem<V> smem_;
  GemmControl& control_;
  RingCursor<V.stages> cursor_;
  int early_ = 0;  // stages ahead of the cursor whose weights are already on their way
};

template <GemmVariant V, class Gate, class Probe>
__device__ inline void produce_tiles(const GroupedGemmArgs& args, GemmSmem<V> smem, Gate& gate,
                                     Probe& probe, int worker, int workers) {
  const bool leader = threadIdx.x % 32 == 0;
  Producer<V> producer(args, smem);
  const int row_blocks = args.expert_rows[args.experts] / kBlockRows;
  const int tiles = row_blocks * args.n_tiles;
  int expert = 0;

  for (int index = worker; index < tiles; index += workers) {
    const TileCoord tile = tile_coord(index, row_blocks, args);
    // With pairs of row blocks the search may step back by one block: restart from the pair's
    // first.
    const int first = args.block_group == 1 ? tile.row_block : tile.row_block & ~1;
    expert = expert_of_row(args, first * kBlockRows, expert);
    const int own =
        first == tile.row_block ? expert : expert_of_row(args, tile.row_block * kBlockRows, expert);
    bool open = true;
    if (leader) {
      probe.record(ProbePoint::kGateBegin, tile.row_block, tile.n_tile);
      open = producer.open(gate, tile, own);
      probe.record(ProbePoint::kGateEnd, tile.row_block, tile.n_tile);
      if (open)
        producer.load(tile, own);
    }
    if (!__shfl_sync(~0u, open, 0))
      break;
  }
  if (leader)
    producer.stop();
  __syncwarp();
}

}  // namespace fusescope::kernels
