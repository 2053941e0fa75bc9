// Consumer role of transposed variants: two warpgroups, half of the tile's columns of B each. A wgmma takes 64
// columns of B, its own rows, by rows of A; a warpgroup has two of them a step of K: of one row block, two times
// 64 columns; of two, 64 columns by the first half of the tile's rows, and by the second. Sums lie column by
// column, and are turned on their way to shared memory.
//
// The number of rows is part of the instruction: there is an instance of the loop for every number of steps.
// All of it is inlined by force: ptxas lets no wgmma be under way across a call, and these are large.
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
class TransposedConsumer : public RingConsumer<V, Probe> {
  using Base = RingConsumer<V, Probe>;
  using Base::control_, Base::cursor_, Base::group_, Base::smem_;
  using Base::free_chunk, Base::hand_over, Base::lane, Base::previous, Base::record, Base::release,
      Base::warp;

 public:
  __device__ TransposedConsumer(GemmSmem<V> smem, Probe& probe, int group)
      : Base(smem, probe, group) {}

  // A tile of at most so many steps.
  template <int Steps = most_rows(V) / kRowStep>
  __device__ __forceinline__ void run(const TileHeader& tile, int k_steps) {
    if constexpr (Steps > kParts) {
      if (steps_of(V, tile.rows()) < Steps) {
        run<Steps - 1>(tile, k_steps);
        return;
      }
    }
    constexpr int kFirst = first_part(V, Steps);
    constexpr int kSecond = kParts == 1 ? Steps : Steps - kFirst;
    float low[kFirst * kRowStep / 2];
    float high[kSecond * kRowStep / 2];
    record(ProbePoint::kMainloopBegin, tile);
    multiply(k_steps, low, high);
    record(ProbePoint::kMainloopEnd, tile);
    write<Steps>(tile, low, high);
    record(ProbePoint::kEpilogueEnd, tile);
  }

  __device__ void stop() { this->hand_over_end(); }

 private:
  static constexpr bool kFused = V.epilogue == Epilogue::kSiluMul;
  static constexpr int kParts = blocks_per_tile(V);  // that the tile's rows are multiplied in
  static constexpr int kRowBytes = V.block_k * 2;    // of a stage
  // In a stage of B, bytes from a warpgroup's first 64 rows to the next: with the activation, those are of gate, and
  // the matching ones of up.
  static constexpr int kNextColumns = kFused ? b_stage_bytes(V) / 2 : kConsumerRows * kRowBytes;

  // Always keeps one group of wgmma in flight: a stage is released when the group after it has been issued and
  // its own has finished.
  template <int Low, int High>
  __device__ __forceinline__ void multiply(int k_steps, float (&low)[Low], float (&high)[High]) {
    issue_step(low, high, 0);
    cursor_.advance();
    for (int k = 1; k < k_steps; ++k) {
      issue_step(low, high, 1);
      wgmma::wait<1>();
      release(previous());
      cursor_.advance();
    }
    wgmma::wait<0>();
    wgmma::pin(low);
    wgmma::pin(high);
    this->release_last();
  }

  template <int Low, int High>
  __device__ __forceinline__ void issue_step(float (&low)[Low], float (&high)[High],
                                             int accumulate) {
    wait_phase(control_.full[cursor_.slot], cursor_.parity);
    constexpr int kFirstRows = 2 * Low;
    const unsigned char* rows = smem_.a_stage(cursor_.slot);
    const unsigned char* columns = smem_.own(cursor_.slot, group_);
    const std::uint64_t rows_1 = wgmma::descriptor(rows);
    const std::uint64_t columns_1 = wgmma::descriptor(columns);
    const std::uint64_t rows_2 =
        kParts == 1 ? rows_1 : wgmma::descriptor(rows + kFirstRows * kRowBytes);
    const std::uint64_t columns_2 =
        kParts == 1 ? wgmma::descriptor(columns + kNextColumns) : columns_1;
    wgmma::pin(low);
    wgmma::pin(high);
    wgmma::fence();
#pragma unroll
    for (int i = 0; i < V.block_k / 16; ++i) {
      const std::uint64_t step = i * wgmma::kDescriptorStepK16;
      const int adds = i == 0 ? accumulate : 1;
      wgmma::Mma<2 * Low>::issue(low, columns_1 + step, rows_1 + step, adds);
      wgmma::Mma<2 * High>::issue(high, columns_2 + step, rows_2 + step, adds);
    }
    wgmma::commit();
    wgmma::pin(low);
    wgmma::pin(high);
  }

  template <int Steps, int Low, int High>
  __device__ __forceinline__ void write(const TileHeader& tile, const float (&low)[Low],
                                        const float (&high)[High]) {
    constexpr int kStepsAtOnce = staged_rows(V) / kRowStep;
    constexpr int kFirst = Low / 8;
    constexpr int kColumnParts = kParts == 1 && !kFused ? 2 : 1;
#pragma unroll
    for (int part = 0; part < kColumnParts; ++part) {
#pragma unroll
      for (int first = 0; first < Steps; first += kStepsAtOnce) {
        unsigned char* chunk = free_chunk();
#pragma unroll
        for (int i = 0; i < kStepsAtOnce && first + i < Steps; ++i) {
          const int step = first + i;
          unsigned char* to = chunk + i * kRowStep * staged_cols(V) * 2;
          if constexpr (kParts == 1) {
            write_step(to, step * 8, part == 0 ? low : high, high);
          } else if (step < kFirst) {
            write_step(to, step * 8, low, low);
          } else {
            write_step(to, (step - kFirst) * 8, high, high);
          }
        }
        hand_over(tile);
      }
    }
  }

  // A step of rows, from the sums that begin at `at`, with the activation by those of `up`. A lane's pairs are of
  // two neighbouring rows in one column; stmatrix turns eight by eight of them into eight rows of 16 bytes, a
  // unit of the swizzle that the output's tensor map expects.
  template <int Count, int UpCount>
  __device__ __forceinline__ void write_step(unsigned char* to, int at, const float (&sums)[Count],
                                             const float (&up)[UpCount]) {
    if constexpr (kFused && kParts == 2) {
      // Of a warp's 16 columns, eight are of gate, and the others the matching ones of up: one unit of four.
      std::uint32_t pairs[2];
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        const int s = at + 4 * i;
        pairs[i] = pack_bf16(silu(sums[s]) * sums[s + 2], silu(sums[s + 1]) * sums[s + 3]);
      }
      const int row = lane() % 16;
      store_turned(to + row * 64 + (warp() ^ row / 2 % 4) * 16, pairs);
    } else {
      // A warp's 16 columns are two units of eight.
      std::uint32_t pairs[4];
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const int s = at + 2 * i;
        pairs[i] = kFused ? pack_bf16(silu(sums[s]) * up[s], silu(sums[s + 1]) * up[s + 1])
                          : pack_bf16(sums[s], sums[s + 1]);
      }
      const int row = lane() / 16 * 8 + lane() % 8;
      const int unit = warp() * 2 + lane() / 8 % 2;
      store_turned(to + row * 128 + (unit ^ row % 8) * 16, pairs);
    }
  }

  // PTX ISA, "stmatrix": lanes 8 i to 8 i + 7 name the rows of matrix i.
  __device__ static void store_turned(unsigned char* row, const std::uint32_t (&pairs)[2]) {
    asm volatile("stmatrix.sync.aligned.m8n8.x2.trans.shared.b16 [%0], {%1, %2};" ::"r"(
                     static_cast<std::uint32_t>(__cvta_generic_to_shared(row))),
                 "r"(pairs[0]), "r"(pairs[1])
                 : "memory");
  }
  __device__ static void store_turned(unsigned char* row, const std::uint32_t (&pairs)[4]) {
    asm volatile("stmatrix.sync.aligned.m8n8.x4.trans.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(
                     static_cast<std::uint32_t>(__cvta_generic_to_shared(row))),
                 "r"(pairs[0]), "r"(pairs[1]), "r"(pairs[2]), "r"(pairs[3])
                 : "memory");
  }
};

template <GemmVariant V, class Probe>
__device__ __forceinline__ void consume_transposed_tiles(const GroupedGemmArgs& args,
                                                         GemmSmem<V> smem, Probe& probe,
                                                         int group) {
  TransposedConsumer<V, Probe> consumer(smem, probe, group);
  for (;;) {
    const TileHeader tile = consumer.next_tile();
    if (tile.row_block == kStop)
      break;
    consumer.run(tile, args.k_steps);
  }
  consumer.stop();
}

}  // namespace fusescope::kernels
