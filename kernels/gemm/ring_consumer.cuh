// What the consumers of both wgmma forms do alike: a place in the ring, a place among the staged chunks.
#pragma once

#include "gemm_hooks.cuh"
#include "gemm_smem.cuh"

namespace fusescope::kernels {

inline constexpr unsigned kFirstConsumerBarrier = 6;  // named barriers, one per warpgroup

template <GemmVariant V, class Probe>
class RingConsumer {
 public:
  __device__ RingConsumer(GemmSmem<V> smem, Probe& probe, int group)
      : smem_(smem), control_(smem.control()), probe_(probe), group_(group) {}

  // The next tile, once its first stage is full. The stage is not consumed.
  __device__ TileHeader next_tile() {
    wait_phase(control_.full[cursor_.slot], cursor_.parity);
    // Read by the lane that later releases the slot, so that the release covers the read.
    TileHeader tile{};
    if (lane() == 0)
      tile = control_.stage_tile[cursor_.slot];
    tile.row_block = __shfl_sync(~0u, tile.row_block, 0);
    tile.place = __shfl_sync(~0u, tile.place, 0);
    return tile;
  }

  __device__ void record(ProbePoint point, const TileHeader& tile) {
    if (group_ == 0 && threadIdx.x % 128 == 0)
      probe_.record(point, tile.row_block, tile.n_tile());
  }

 protected:
  __device__ int previous() const { return (cursor_.slot == 0 ? V.stages : cursor_.slot) - 1; }

  // Per warp, not per thread: wgmma::wait is warp-wide, and the copy that refills the stage is
  // ordered behind the wgmma reads of all warps by this barrier.
  __device__ void release(int slot) {
    if (lane() == 0)
      arrive(control_.empty[slot]);
  }

  // After the multiplication of a tile's last stage.
  __device__ void release_last() {
    if constexpr (lent_chunks(V) > 0) {
      // The stage lends the output room, and the storer gives it back. What a warp writes there, another may
      // still be multiplying.
      __barrier_sync_count(kFirstConsumerBarrier + group_, 32 * kWarpsPerConsumer);
    } else {
      release(previous());
    }
  }

  // The buffer that the next chunk of output goes into, once it is free. Between a tile's last stage and the next
  // tile's first.
  __device__ unsigned char* free_chunk() {
    wait_free(control_.drained[group_][chunk_.slot], chunk_.parity);
    return smem_.chunk(group_, chunk_.slot, previous());
  }

  __device__ void hand_over(const TileHeader& tile) {
    // The chunk was written by generic stores of all lanes and is read by the storer's bulk copy:
    // the proxy fence in each writing thread, then the barrier's release, order the two.
    ptx::fence_proxy_async(ptx::space_shared);
    __syncwarp();
    if (lane() == 0) {
      if (warp() == 0) {
        control_.chunk_tile[group_][chunk_.slot] = tile;
        control_.lender[group_][chunk_.slot] = previous();
      }
      arrive(control_.staged[group_][chunk_.slot]);
    }
    chunk_.advance();
  }

  // Tells the storer to leave.
  __device__ void hand_over_end() {
    free_chunk();
    hand_over({kStop, 0});
  }

  __device__ static int lane() { return static_cast<int>(threadIdx.x) % 32; }
  __device__ static int warp() { return static_cast<int>(threadIdx.x) % 128 / 32; }

  GemmSmem<V> smem_;
  GemmControl<V>& control_;
  Probe& probe_;
  int group_;
  RingCursor<V.stages> cursor_;
  RingCursor<all_chunks(V)> chunk_;
};

}  // namespace fusescope::kernels
