// Consumer role: two warpgroups, 64 rows of the tile each. Both read the same ring stages and keep
// their accumulators in registers. A finished tile is rounded to bf16, which halves it, and handed to
// the storer through shared memory in chunks of 64 x 64: at once, or (deferred variants) chunk by
// chunk under the next tile's multiplication.
#pragma once

#include <cstdint>

#include "gemm_args.hpp"
#include "gemm_epilogue.cuh"
#include "gemm_hooks.cuh"
#include "gemm_smem.cuh"
#include "ring_consumer.cuh"
#include "wgmma.cuh"

namespace fusescope::kernels {

template <GemmVariant V, class Probe>
class Consumer : public RingConsumer<V, Probe> {
  using Base = RingConsumer<V, Probe>;
  using Base::control_, Base::cursor_, Base::group_, Base::smem_;
  using Base::hand_over, Base::lane, Base::previous, Base::release, Base::warp;

 public:
  using Base::record;
  static constexpr int kAccumulators = V.block_n / 2;
  static constexpr int kChunks = V.out_cols() / kStagedCols;
  static constexpr int kChunkWords = kConsumerRows * kStagedCols / 2 / 128;  // per thread

  __device__ Consumer(GemmSmem<V> smem, Probe& probe, int group) : Base(smem, probe, group) {}

  // acc = A * B^T over all k. Always keeps one group of wgmma in flight: a stage is released when
  // the group after it has been issued and its own has finished. Writes the previous tile's output
  // on the way, if that was deferred.
  __device__ void multiply(int k_steps, float (&acc)[kAccumulators]) {
    constexpr int kFirst = V.deferred ? kChunks : 1;
#pragma unroll
    for (int k = 0; k < kFirst; ++k) {
      if (k < k_steps)
        issue_step(acc, k > 0);
      if (V.deferred && has_output())
        write_chunk(k);
      if (k < k_steps)
        finish_step(k > 0);
    }
    if (V.deferred && has_output())
      end_output();
    for (int k = kFirst; k < k_steps; ++k) {
      issue_step(acc, 1);
      finish_step(true);
    }
    wgmma::wait<0>();
    wgmma::pin(acc);
    this->release_last();
  }

  // Takes part in the ring for a tile that has no rows for this warpgroup. Deferred output goes on
  // waiting: to write it here too costs registers that the multiplication has not.
  __device__ void pass_over(int k_steps) {
    for (int k = 0; k < k_steps; ++k) {
      // Not before the stage is full: until then `empty` is in the phase of the stage's last use.
      wait_phase(control_.full[cursor_.slot], cursor_.parity);
      release(cursor_.slot);
      cursor_.advance();
    }
  }

  // Takes the accumulators over as output of `tile`.
  __device__ void keep(const TileHeader& tile, const float (&acc)[kAccumulators]) {
#pragma unroll
    for (int i = 0; i < kChunks * kChunkWords; ++i)
      output_[i] = output_pair(acc, 2 * i);
    output_tile_ = tile;
  }

  // Writes kept output now. All warps of the warpgroup take this path together: a chunk's buffer
  // comes back only when every warp has written the chunks before it.
  __device__ void flush() {
    if (!has_output())
      return;
#pragma unroll
    for (int chunk = 0; chunk < kChunks; ++chunk)
      write_chunk(chunk);
    end_output();
  }

  __device__ void stop() {
    flush();
    this->hand_over_end();
  }

 private:
  __device__ bool has_output() const {
    return output_tile_.row_block != kStop;
  }

  __device__ void issue_step(float (&acc)[kAccumulators], int accumulate) {
    wait_phase(control_.full[cursor_.slot], cursor_.parity);
    const std::uint64_t a = wgmma::descriptor(smem_.own(cursor_.slot, group_));
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
  }

  __device__ void finish_step(bool release_previous) {
    if (release_previous) {
      wgmma::wait<1>();
      release(previous());
    }
    cursor_.advance();
  }

  // Columns [64 * chunk, 64 * chunk + 64) of this warpgroup's rows, in the 128-byte swizzle that
  // the output's tensor map expects: 16-byte unit u of row r sits at unit u ^ (r % 8). The eight
  // rows that a warp writes at once then fall into different banks.
  __device__ void write_chunk(int chunk) {
    unsigned char* base = this->free_chunk() + lane() % 4 * 4;
    const int shift = V.shifts() ? empty_rows(output_tile_.rows(), group_) : 0;
    const int row = (warp() * 16 + lane() / 4 + kConsumerRows - shift) % kConsumerRows;
    const int row_8 = (row + 8) % kConsumerRows;
#pragma unroll
    for (int unit = 0; unit < kStagedCols / 8; ++unit) {
      unsigned char* at = base + (unit ^ (row % 8)) * 16;
      const int i = chunk * kChunkWords + unit * 2;
      *reinterpret_cast<std::uint32_t*>(at + row * 128) = output_[i];
      *reinterpret_cast<std::uint32_t*>(at + row_8 * 128) = output_[i + 1];
    }
    hand_over(output_tile_);
  }

  __device__ void end_output() {
    record(ProbePoint::kEpilogueEnd, output_tile_);
    output_tile_.row_block = kStop;
  }

  __device__ static std::uint32_t output_pair(const float (&acc)[kAccumulators], int i) {
    if constexpr (V.epilogue == Epilogue::kSiluMul) {
      constexpr int kUp = kAccumulators / 2;
      return pack_bf16(silu(acc[i]) * acc[kUp + i], silu(acc[i + 1]) * acc[kUp + i + 1]);
    } else {
      return pack_bf16(acc[i], acc[i + 1]);
    }
  }

  std::uint32_t output_[kChunks * kChunkWords];  // bf16 pairs of the tile that is to be written
  TileHeader output_tile_{kStop, 0};             // kStop: there is none
};

template <GemmVariant V, class Probe>
__device__ inline void consume_tiles(const GroupedGemmArgs& args, GemmSmem<V> smem, Probe& probe,
                                     int group) {
  Consumer<V, Probe> consumer(smem, probe, group);
  float acc[Consumer<V, Probe>::kAccumulators];

  for (;;) {
    const TileHeader tile = consumer.next_tile();
    if (tile.row_block == kStop)
      break;
    if (group >= tile.halves()) {
      consumer.pass_over(args.k_steps);
      continue;
    }
    consumer.record(ProbePoint::kMainloopBegin, tile);
    consumer.multiply(args.k_steps, acc);
    consumer.record(ProbePoint::kMainloopEnd, tile);
    consumer.keep(tile, acc);
    if constexpr (!V.deferred)
      consumer.flush();
  }
  consumer.stop();
}

}  // namespace fusescope::kernels
