// Consumer role: two warpgroups, 64 rows of the tile each. Both read the same ring stages, keep
// their accumulators in registers, and hand finished output to the storer through shared memory in
// chunks of 64 x 64.
#pragma once

#include <cuda_bf16.h>

#include <cstdint>

#include "gemm_args.hpp"
#include "gemm_hooks.cuh"
#include "gemm_smem.cuh"
#include "wgmma.cuh"

namespace fusescope::kernels {

__device__ inline float silu(float x) {
  return __fdividef(x, 1.0f + __expf(-x));
}

__device__ inline std::uint32_t pack_bf16(float low, float high) {
  const __nv_bfloat162 pair = __floats2bfloat162_rn(low, high);
  return reinterpret_cast<const std::uint32_t&>(pair);
}

template <GemmVariant V>
class Consumer {
 public:
  static constexpr int kAccumulators = V.block_n / 2;

  __device__ Consumer(GemmSmem<V> smem, int group)
      : smem_(smem), control_(smem.control()), group_(group) {}

  // Lets the first warpgroup get V.head_start stages ahead.
  __device__ void start() {
    if constexpr (V.head_start > 0) {
      if (group_ == 1)
        wait_phase(control_.head_start, 0);
    }
  }

  // The next tile, once its first stage is full. The stage is not consumed.
  __device__ TileHeader next_tile() {
    wait_phase(control_.full[cursor_.slot], cursor_.parity);
    return control_.stage_tile[cursor_.slot];
  }

  // acc = A * B^T over all k. Always keeps one group of wgmma in flight: a stage is released when
  // the group after it has been issued and its own has finished.
  __device__ void multiply(int k_steps, float (&acc)[kAccumulators]) {
    issue_step(acc, 0);
    int previous = cursor_.slot;
    cursor_.advance();
    for (int k = 1; k < k_steps; ++k) {
      wait_phase(control_.full[cursor_.slot], cursor_.parity);
      issue_step(acc, 1);
      wgmma::wait<1>();
      release(previous);
      previous = cursor_.slot;
      cursor_.advance();
    }
    wgmma::wait<0>();
    wgmma::pin(acc);
    release(previous);
  }

  __device__ void write(const TileHeader& tile, const float (&acc)[kAccumulators]) {
    constexpr int kChunks = V.out_cols() / kStagedCols;
#pragma unroll
    for (int chunk = 0; chunk < kChunks; ++chunk) {
      wait_free(control_.drained[group_][chunk_.slot], chunk_.parity);
      fill_chunk(chunk, acc);
      hand_over(tile);
    }
  }

  __device__ void stop() {
    if constexpr (V.head_start > 0) {
      if (steps_to_start_ > 0)
        give_start();
    }
    wait_free(control_.drained[group_][chunk_.slot], chunk_.parity);
    hand_over({kStop, 0});
  }

 private:
  __device__ void issue_step(float (&acc)[kAccumulators], int accumulate) {
    const std::uint64_t a =
        wgmma::descriptor(smem_.a_stage(cursor_.slot) + group_ * kConsumerRows * V.block_k * 2);
    const std::uint64_t b = wgmma::descriptor(smem_.b_stage(cursor_.slot));
    wgmma::pin(acc);
    wgmma::fence();
#pragma unroll
    for (int i = 0; i < V.block_k / 16; ++i) {
      wgmma::Mma<V.block_n>::issue(acc, a + i * wgmma::kDescriptorStepK16,
                                   b + i * wgmma::kDescriptorStepK16, i == 0 ? accumulate : 1);
    }
    wgmma::commit();
    wgmma::pin(acc);
    if constexpr (V.head_start > 0) {
      if (--steps_to_start_ == 0)
        give_start();
    }
  }

  __device__ void give_start() {
    if (group_ == 0 && threadIdx.x % 128 == 0)
      arrive(control_.head_start);
  }

  // Per warp, not per thread: wgmma::wait is warp-wide, and the copy that refills the stage is
  // ordered behind the wgmma reads of all warps by this barrier.
  __device__ void release(int slot) {
    if (lane() == 0)
      arrive(control_.empty[slot]);
  }

  // Columns [64 * chunk, 64 * chunk + 64) of this warpgroup's rows, in the 128-byte swizzle that
  // the output's tensor map expects: 16-byte unit u of row r sits at unit u ^ (r % 8). The eight
  // rows that a warp writes at once then fall into different banks.
  __device__ void fill_chunk(int chunk, const float (&acc)[kAccumulators]) {
    const int row = warp() * 16 + lane() / 4;
    unsigned char* line = smem_.chunk(group_, chunk_.slot) + row * 128 + lane() % 4 * 4;
#pragma unroll
    for (int unit = 0; unit < kStagedCols / 8; ++unit) {
      unsigned char* at = line + ((unit ^ (row % 8)) * 16);
      const int i = (chunk * (kStagedCols / 8) + unit) * 4;
      *reinterpret_cast<std::uint32_t*>(at) = output_pair(acc, i);
      *reinterpret_cast<std::uint32_t*>(at + 8 * 128) = output_pair(acc, i + 2);
    }
  }

  __device__ static std::uint32_t output_pair(const float (&acc)[kAccumulators], int i) {
    if constexpr (V.epilogue == Epilogue::kSiluMul) {
      constexpr int kUp = kAccumulators / 2;
      return pack_bf16(silu(acc[i]) * acc[kUp + i], silu(acc[i + 1]) * acc[kUp + i + 1]);
    } else {
      return pack_bf16(acc[i], acc[i + 1]);
    }
  }

  __device__ void hand_over(const TileHeader& tile) {
    // The chunk was written by generic stores of all lanes and is read by the storer's bulk copy:
    // the proxy fence in each writing thread, then the barrier's release, order the two.
    ptx::fence_proxy_async(ptx::space_shared);
    __syncwarp();
    if (lane() == 0) {
      if (warp() == 0)
        control_.chunk_tile[group_][chunk_.slot] = tile;
      arrive(control_.staged[group_][chunk_.slot]);
    }
    chunk_.advance();
  }

  __device__ static int lane() {
    return static_cast<int>(threadIdx.x) % 32;
  }
  __device__ static int warp() {
    return static_cast<int>(threadIdx.x) % 128 / 32;
  }

  GemmSmem<V> smem_;
  GemmControl& control_;
  int group_;
  RingCursor<V.stages> cursor_;
  RingCursor<kStagedPerConsumer> chunk_;
  int steps_to_start_ = V.head_start;
};

template <GemmVariant V, class Probe>
__device__ inline void consume_tiles(const GroupedGemmArgs& args, GemmSmem<V> smem, Probe& probe,
                                     int group) {
  const bool recorder = group == 0 && threadIdx.x % 128 == 0;
  Consumer<V> consumer(smem, group);
  float acc[Consumer<V>::kAccumulators];

  consumer.start();
  for (;;) {
    const TileHeader tile = consumer.next_tile();
    if (tile.row_block == kStop)
      break;
    if (recorder)
      probe.record(ProbePoint::kMainloopBegin, tile.row_block, tile.n_tile);
    consumer.multiply(args.k_steps, acc);
    if (recorder)
      probe.record(ProbePoint::kMainloopEnd, tile.row_block, tile.n_tile);
    consumer.write(tile, acc);
    if (recorder)
      probe.record(ProbePoint::kEpilogueEnd, tile.row_block, tile.n_tile);
  }
  consumer.stop();
}

}  // namespace fusescope::kernels
