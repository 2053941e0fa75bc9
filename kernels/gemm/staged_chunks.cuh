// A storer's way through its warpgroup's staged chunks, of either wgmma form. By one thread.
#pragma once

#include "gemm_smem.cuh"

namespace fusescope::kernels {

template <GemmVariant V>
class StagedChunks {
 public:
  __device__ StagedChunks(GemmSmem<V> smem, int group)
      : smem_(smem), control_(smem.control()), group_(group) {}

  // Waits for the next chunk, and says whose it is. kStop: there is none, and nothing is being copied any more:
  // whoever reuses the shared memory, or reads D, comes after the last write.
  __device__ TileHeader next() {
    wait_phase(control_.staged[group_][cursor_.slot], cursor_.parity);
    const TileHeader tile = control_.chunk_tile[group_][cursor_.slot];
    if (tile.row_block == kStop) {
      ptx::cp_async_bulk_wait_group(ptx::n32_t<0>());
    } else if constexpr (lent_chunks(V) > 0) {
      lender_ = control_.lender[group_][cursor_.slot];
    }
    return tile;
  }

  __device__ unsigned char* bytes() const { return smem_.chunk(group_, cursor_.slot, lender_); }

  // The chunk's copy has been started. A chunk goes back to the consumer when the copy engine has read it.
  __device__ void pass() {
    ptx::cp_async_bulk_commit_group();
    if (++in_tile_ > kUnread) {
      ptx::cp_async_bulk_wait_group_read(ptx::n32_t<kUnread>());
      hand_back(kUnread);
    }
    cursor_.advance();
  }

  // Before a tile is published. Until its writes are complete, not merely read from shared memory; the proxy fence
  // orders the bulk stores before the generic release inside a signal.
  __device__ void await_writes() const {
    ptx::cp_async_bulk_wait_group(ptx::n32_t<0>());
    ptx::fence_proxy_async(ptx::space_global);
  }

  // Behind a tile's last chunk: all that is left goes back, and the stage that lent room.
  __device__ void end_tile() {
    ptx::cp_async_bulk_wait_group_read(ptx::n32_t<0>());
    for (int behind = min(in_tile_, kUnread); behind > 0; --behind)
      hand_back(behind);
    in_tile_ = 0;
    if constexpr (lent_chunks(V) > 0)
      arrive(control_.empty[lender_], kWarpsPerConsumer);
  }

 private:
  static constexpr int kUnread =
      all_chunks(V) / 2;  // copies that are read while another is started

  // The chunk so many places before the cursor.
  __device__ void hand_back(int behind) {
    arrive(control_.drained[group_][(cursor_.slot + all_chunks(V) - behind) % all_chunks(V)]);
  }

  GemmSmem<V> smem_;
  GemmControl<V>& control_;
  int group_;
  RingCursor<all_chunks(V)> cursor_;
  int in_tile_ = 0;  // chunks of the tile so far
  int lender_ = 0;   // its last stage
};

}  // namespace fusescope::kernels
