// Scheduler role: one warp finds the block's tiles, each while the producer still loads the one before: the counter's
// latency, the search for the expert and the gate's first answer are no time in which nothing is loaded.
//
//   scheduler   finds a tile, asks its gate once, writes `next`     arrives at `found`
//   producer    reads `next`; some stages before the tile's last    arrives at `asked`
//
// In between its thread does the gate's work, if there is some.
#pragma once

#include <cstdint>

#include "gemm_args.hpp"
#include "gemm_hooks.cuh"
#include "gemm_schedule.cuh"
#include "gemm_smem.cuh"

namespace fusescope::kernels {

// Whether all gates of a tile are open now. False where the gate has no such question.
template <GemmVariant V, class Gate>
__device__ inline bool is_open_now(Gate& gate, const TileJob& job) {
  if constexpr (requires { gate.is_open(0); }) {
    for (int block = 0; block < row_blocks_of(V, job); ++block) {
      if (!gate.is_open(job.row_block + block))
        return false;
    }
    return true;
  }
  return false;
}

// Until the producer has asked for the next tile.
template <class Gate>
__device__ inline void wait_asked(Gate& gate, std::uint64_t& asked, std::uint32_t parity) {
  if constexpr (requires { gate.work(); }) {
    while (!ptx::mbarrier_test_wait_parity(&asked, parity))
      gate.work();
  } else {
    wait_phase(asked, parity);
  }
}

template <GemmVariant V, class Gate>
__device__ inline void schedule_tiles(const GroupedGemmArgs& args, GemmSmem<V> smem, Gate& gate,
                                      int worker, int workers) {
  const bool leader = threadIdx.x % 32 == 0;
  GemmControl<V>& control = smem.control();
  Schedule<V> schedule(args, control, workers);
  TileJob job{};
  std::uint32_t parity = 0;

  int tile = worker;
  for (; tile != kNoTile && schedule.find(tile, job); parity ^= 1) {
    int following = kNoTile;
    if (leader) {
      control.next = {job, is_open_now<V>(gate, job)};
      arrive(control.found);
      wait_asked(gate, control.asked, parity);
      if (!control.gave_up)
        following = schedule.after(tile);
    }
    tile = __shfl_sync(~0u, following, 0);
  }
  if (leader) {
    if (tile != kNoTile) {  // else the producer has left
      control.next.job.row_block = kStop;
      arrive(control.found);
    }
    if constexpr (requires { gate.work(); }) {
      while (gate.work()) {
      }
    }
  }
}

}  // namespace fusescope::kernels
