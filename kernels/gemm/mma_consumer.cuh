// Consumer role of the mma.sync mainloop: four warps, one per scheduler of the SM. Each reads its fragments
// from the ring by ldmatrix, keeps its accumulators in registers, and stages its part of the finished tile in
// shared memory for the storer.
//
// A warp has 64 x 64 of the tile: 64 columns, and 32 rows of either half, so that a tile whose second half
// holds no rows costs all four warps half of the products. Fewer rows and columns per warp would have the
// same operands read from shared memory more often than mma.sync at full rate leaves time for; more warps
// would leave each too few registers.
//
// Sums run along K in steps of 16, whatever the ring's depth: the same bits.
#pragma once

#include <cstdint>

#include "gemm_args.hpp"
#include "gemm_epilogue.cuh"
#include "gemm_hooks.cuh"
#include "gemm_smem.cuh"
#include "mma.cuh"

namespace fusescope::kernels {

template <GemmVariant V, class Probe>
class MmaConsumer {
 public:
  static constexpr bool kFused = V.epilogue == Epilogue::kSiluMul;
  static constexpr int kAcross = 2;                // warps, two by two
  static constexpr int kRows = kConsumerRows / 2;  // of a warp, in each half
  static constexpr int kRowTiles = 4;              // of the instruction's 16 rows: two in each half
  static constexpr int kColumnTiles = 8;           // of its 8 columns
  static constexpr int kPairs = kColumnTiles / 2;  // what one ldmatrix brings of B
  static constexpr int kOutCols = V.out_cols() / kAcross;  // of a warp
  static constexpr int kSteps = V.block_k / 16;            // along K, in one stage
  static constexpr int kPitch = V.block_k * 2;             // [bytes] of a row in a stage
  using Accumulators = float[kRowTiles][kColumnTiles][4];

  __device__ MmaConsumer(GemmSmem<V> smem, Probe& probe)
      : smem_(smem), control_(smem.control()), probe_(probe), first_(first_stage()) {}

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

  // acc = A * B^T over all k, of the first `Halves` halves. The first stage is full. Fragments are read ahead
  // of the products that use them: of A half a step, of B two pairs of column tiles.
  template <int Halves>
  __device__ void multiply(int k_steps, Accumulators& acc) {
    clear(acc);
    Fragments f;
    const Place first = stage(cursor_.slot);
#pragma unroll
    for (int m = 0; m < 2 * Halves; ++m)
      load_a(f, first, 0, m);
    load_b(f, first, 0, 0);
    load_b(f, first, 0, 1);

    for (int k = 0; k < k_steps; ++k) {
      const int slot = cursor_.slot;
      const Place here = stage(slot);
      cursor_.advance();
      // Behind the tile's last stage comes the next tile's first, whose header is read before it. There
      // the fragments that are read ahead are of this stage again, and not used.
      const bool last = k == k_steps - 1;
      const Place next = last ? here : stage(cursor_.slot);
#pragma unroll
      for (int step = 0; step < kSteps - 1; ++step) {
        multiply_pairs<Halves, 0>(acc, f, here, step, here);
        multiply_pairs<Halves, 2>(acc, f, here, step, here);
      }
      // Asked before the products under which the answer's latency hides.
      const bool ready =
          last || ptx::mbarrier_test_wait_parity(&control_.full[cursor_.slot], cursor_.parity);
      multiply_pairs<Halves, 0>(acc, f, here, kSteps - 1, next);
      if (!ready)
        wait_phase(control_.full[cursor_.slot], cursor_.parity);
      __syncwarp();  // lanes may have seen the barrier apart; what follows is the warp's
      multiply_pairs<Halves, 2>(acc, f, here, kSteps - 1, next);
      release(slot);
    }
  }

  // This warp's part of its chunks, in the 128-byte swizzle that the output's tensor map expects: 16-byte
  // unit u of row r sits at unit u ^ (r % 8). The eight rows that a warp writes at once then fall into
  // different banks.
  template <int Halves>
  __device__ void stage_output(const TileHeader& tile, const Accumulators& acc) {
    const int row = down() * kRows + lane() / 4;
    const int first_unit = across() * kOutCols % kStagedCols / 8;
#pragma unroll
    for (int half = 0; half < Halves; ++half) {
      wait_free(control_.drained[half][chunk()], drained_parity(half));
      unsigned char* const line = smem_.chunk(half, chunk()) + row * 128 + lane() % 4 * 4;
#pragma unroll
      for (int m = 0; m < kRowTiles / 2; ++m) {
#pragma unroll
        for (int unit = 0; unit < kOutCols / 8; ++unit) {
          unsigned char* const at = line + m * 16 * 128 + ((first_unit + unit) ^ (row % 8)) * 16;
          const auto& sums = acc[half * kRowTiles / 2 + m];
          *reinterpret_cast<std::uint32_t*>(at) = output_pair(sums, unit, 0);
          *reinterpret_cast<std::uint32_t*>(at + 8 * 128) = output_pair(sums, unit, 2);
        }
      }
      hand_over(half, tile);
    }
  }

  // Tells the storer to leave, through the first half's first chunk.
  __device__ void stop() {
    if (chunk() != 0)
      return;
    wait_free(control_.drained[0][0], drained_parity(0));
    hand_over(0, {kStop, 0});
  }

  __device__ void record(ProbePoint point, const TileHeader& tile) {
    if (threadIdx.x == 0)
      probe_.record(point, tile.row_block, tile.n_tile());
  }

 private:
  struct Fragments {
    std::uint32_t a[2][kRowTiles][4];  // by step's parity
    std::uint32_t b[kPairs][4];
  };

  __device__ static int lane() {
    return static_cast<int>(threadIdx.x) % 32;
  }
  __device__ static int warp() {
    return static_cast<int>(threadIdx.x) / 32;
  }
  __device__ static int across() {
    return warp() % kAcross;
  }
  __device__ static int down() {
    return warp() / kAcross;
  }
  __device__ static int chunk() {
    return across() * kOutCols / kStagedCols;
  }

  // What a row of a stage XORs its 16-byte units with: the copy engine's swizzle, of 128 or 64 bytes.
  __device__ static constexpr int swizzle(int row) {
    return V.block_k == 64 ? row % 8 : row / 2 % 4;
  }

  // What this lane reads first of a stage, of A and of B: its row of the first 16 x 16, and of the first two
  // column tiles. Rows of further tiles are multiples of 8 rows away, which leaves the swizzle alone, and a
  // step of 16 along K is two units: bits 5 and 6 of the address, which the row's pitch leaves free.
  struct Place {
    std::uint32_t a;
    std::uint32_t b;
  };
  __device__ Place first_stage() const {
    const int row = down() * kRows + lane() % 16;
    const int a_unit = (lane() / 16) ^ swizzle(row);
    const int column = across() * (kFused ? 32 : 64) + lane() / 16 * 8 + lane() % 8;
    const int b_unit = (lane() / 8 % 2) ^ swizzle(column);
    const auto base = static_cast<std::uint32_t>(__cvta_generic_to_shared(smem_.base));
    return {base + static_cast<std::uint32_t>(row * kPitch + a_unit * 16),
            base + static_cast<std::uint32_t>(V.stages * a_stage_bytes(V) + column * kPitch +
                                              b_unit * 16)};
  }
  __device__ Place stage(int slot) const {
    return {first_.a + static_cast<std::uint32_t>(slot * a_stage_bytes(V)),
            first_.b + static_cast<std::uint32_t>(slot * b_stage_bytes(V))};
  }

  __device__ static void load_a(Fragments& f, const Place& from, int step, int m) {
    const int row = m / 2 * kConsumerRows + m % 2 * 16;
    mma::load_matrices(
        (from.a ^ static_cast<std::uint32_t>(step * 32)) + static_cast<std::uint32_t>(row * kPitch),
        f.a[step % 2][m]);
  }
  // Column tiles 2 * pair and the next. Fused: of gate in the first two pairs, of the matching up columns
  // in the others, so that one thread holds both factors.
  __device__ static void load_b(Fragments& f, const Place& from, int step, int pair) {
    const int column = kFused ? pair % 2 * 16 + pair / 2 * (V.block_n / 2) : pair * 16;
    mma::load_matrices((from.b ^ static_cast<std::uint32_t>(step * 32)) +
                           static_cast<std::uint32_t>(column * kPitch),
                       f.b[pair]);
  }

  // The products of a step with pairs `First` and the next. On the way, with the first two pairs, reads the
  // other two; with the last two, reads what comes first of the next step: of `next`, if this is a stage's
  // last.
  template <int Halves, int First>
  __device__ static void multiply_pairs(Accumulators& acc, Fragments& f, const Place& here,
                                        int step, const Place& next) {
    const int next_step = (step + 1) % kSteps;
#pragma unroll
    for (int pair = First; pair < First + 2; ++pair) {
      if (First == 0) {
        load_b(f, here, step, pair + 2);
      } else {
#pragma unroll
        for (int half = 0; half < Halves; ++half)
          load_a(f, next, next_step, 2 * half + pair - First);
        load_b(f, next, next_step, pair - First);
      }
#pragma unroll
      for (int m = 0; m < 2 * Halves; ++m) {
        mma::multiply(acc[m][2 * pair], f.a[step % 2][m], f.b[pair][0], f.b[pair][1]);
        mma::multiply(acc[m][2 * pair + 1], f.a[step % 2][m], f.b[pair][2], f.b[pair][3]);
      }
    }
  }

  __device__ static void clear(Accumulators& acc) {
#pragma unroll
    for (int m = 0; m < kRowTiles; ++m) {
#pragma unroll
      for (int n = 0; n < kColumnTiles; ++n) {
#pragma unroll
        for (int i = 0; i < 4; ++i)
          acc[m][n][i] = 0;
      }
    }
  }

  // Output columns 2 * (lane % 4) and the next of unit `unit`, of the row that `i` selects: 0, or 2 for the
  // one 8 rows further down.
  __device__ static std::uint32_t output_pair(const float (&acc)[kColumnTiles][4], int unit,
                                              int i) {
    const float(&x)[4] = acc[unit];
    if constexpr (kFused) {
      const float(&up)[4] = acc[kColumnTiles / 2 + unit];
      return pack_bf16(silu(x[i]) * up[i], silu(x[i + 1]) * up[i + 1]);
    } else {
      return pack_bf16(x[i], x[i + 1]);
    }
  }

  __device__ void release(int slot) {
    // All lanes' reads of the stage come before the arrival, which releases them to the copy engine's
    // next writes.
    __syncwarp();
    if (lane() == 0)
      arrive(control_.empty[slot]);
  }

  __device__ std::uint32_t drained_parity(int half) const {
    return chunk_parity_ >> half & 1;
  }

  __device__ void hand_over(int half, const TileHeader& tile) {
    // The chunk was written by generic stores of all lanes and is read by the storer's bulk copy: the
    // proxy fence in each writing thread, then the barrier's release, order the two.
    ptx::fence_proxy_async(ptx::space_shared);
    __syncwarp();
    if (lane() == 0) {
      if (down() == 0 && across() * kOutCols % kStagedCols == 0)
        control_.chunk_tile[half][chunk()] = tile;
      arrive(control_.staged[half][chunk()]);
    }
    chunk_parity_ ^= 1u << half;
  }

  GemmSmem<V> smem_;
  GemmControl<V>& control_;
  Probe& probe_;
  Place first_;
  RingCursor<V.stages> cursor_;
  std::uint32_t chunk_parity_ = 0;  // bit h: half h's; a half without rows stages nothing
};

template <int Halves, GemmVariant V, class Probe>
__device__ inline void mma_consume_tile(const GroupedGemmArgs& args,
                                        MmaConsumer<V, Probe>& consumer, const TileHeader& tile) {
  typename MmaConsumer<V, Probe>::Accumulators acc;
  consumer.record(ProbePoint::kMainloopBegin, tile);
  consumer.template multiply<Halves>(args.k_steps, acc);
  consumer.record(ProbePoint::kMainloopEnd, tile);
  consumer.template stage_output<Halves>(tile, acc);
  consumer.record(ProbePoint::kEpilogueEnd, tile);
}

template <GemmVariant V, class Probe>
__device__ inline void mma_consume_tiles(const GroupedGemmArgs& args, GemmSmem<V> smem,
                                         Probe& probe) {
  MmaConsumer<V, Probe> consumer(smem, probe);
  for (;;) {
    const TileHeader tile = consumer.next_tile();
    if (tile.row_block == kStop)
      break;
    if (tile.halves() == 1) {
      mma_consume_tile<1>(args, consumer, tile);
    } else {
      mma_consume_tile<2>(args, consumer, tile);
    }
  }
  consumer.stop();
}

}  // namespace fusescope::kernels
