// Producer role of variants that gather: one warp finds the block's tiles and fills the ring, as in
// gemm_producer.cuh, but brings each row of A from where the table says. Its first lane asks the gate and issues the weights' bulk
// tensor copies; all lanes together copy the rows, 16 bytes a lane, eight lanes a row.
//
// The copies write through the generic proxy, and wgmma reads through the async one: somebody must wait for a
// stage's copies and cross over. In the copying lanes the fence would wait for the copies of later stages,
// too, and in the consumers for their multiplication. So one thread of another warp does it. The copies
// arrive at a barrier of their own when they have landed; the relay waits there, and arrives at `full`.
#pragma once

#include <cstdint>

#include "gemm_producer.cuh"
#include "gemm_schedule.cuh"

namespace fusescope::kernels {

template <GemmVariant V>
class GatheringProducer : Producer<V> {
  using Base = Producer<V>;
  using Base::args_, Base::smem_, Base::control_, Base::cursor_, Base::early_;

 public:
  __device__ GatheringProducer(const GroupedGemmArgs& args, GemmSmem<V> smem)
      : Base(args, smem), lane_(static_cast<int>(threadIdx.x) % 32) {}

  // All functions are called by all lanes. The answer is the same for all.
  template <class Gate>
  __device__ bool open(Gate& gate, const TileJob& job) {
    int is_open = leads() && is_open_now<V>(gate, job) ? 1 : 0;
    is_open = __shfl_sync(~0u, is_open, 0);
    if (is_open == 0) {
      if (leads())
        is_open = Base::open(gate, job) ? 1 : 0;
      is_open = __shfl_sync(~0u, is_open, 0);
    }
    // Orders what the first lane acquired, the rows, before the other lanes' copies of them: generic
    // loads, which need no proxy fence.
    __syncwarp();
    return is_open != 0;
  }

  __device__ void load(const TileJob& job) {
    const int rows = rows_to_copy(job);
    find_rows(job, rows);
    for (int k = 0; k < args_.k_steps; ++k) {
      const int slot = cursor_.slot;
      wait_free(control_.empty[slot], cursor_.parity);
      if (leads()) {
        if (k == 0)
          control_.stage_tile[slot] = TileHeader::of(job);
        if (k >= early_)
          this->start_weights(slot, k, job);
      }
      start_rows(slot, k, rows);
      arrive_all(slot);
      cursor_.advance();
    }
    early_ = 0;
  }

  // As Producer::stop.
  __device__ void stop() {
    const int early = __shfl_sync(~0u, early_, 0);
    if (early == 0)
      wait_free(control_.empty[cursor_.slot], cursor_.parity);
    if (leads())
      control_.stage_tile[cursor_.slot] = {kStop, 0};
    arrive_all(cursor_.slot);
    RingCursor<V.stages> ahead = cursor_;
    for (int i = 0; i < early; ++i, ahead.advance()) {
      if (i > 0 && leads())  // the relay has left
        arrive(control_.full[ahead.slot]);
      wait_phase(control_.full[ahead.slot], ahead.parity);
    }
  }

 private:
  __device__ bool leads() const { return lane_ == 0; }

  // Half of a row block, or all of it; transposed, all that are multiplied, and up to 16 more, which lie in the
  // same row block.
  __device__ static int rows_to_copy(const TileJob& job) {
    if constexpr (V.transposed) {
      return (job.rows + 31) / 32 * 32;
    } else {
      return job.halves() * kConsumerRows;
    }
  }

  // Where the tile's rows lie, in units of 16 bytes: row r at row_at[r % kRowsAtOnce][r / kRowsAtOnce].
  // The lanes are done with the last tile's: their copies have been issued.
  __device__ void find_rows(const TileJob& job, int rows) {
    const std::int32_t* row = args_.a_rows + job.row_block * kBlockRows + lane_;
    std::uint32_t* at = &control_.row_at[lane_ % kRowsAtOnce][lane_ / kRowsAtOnce];
    __syncwarp();
#pragma unroll
    for (int first = 0; first < most_rows(V); first += 32) {
      if (first < rows)
        at[first / kRowsAtOnce] = static_cast<std::uint32_t>(row[first]) * args_.a_row_units;
    }
    __syncwarp();
  }

  // Starts the copies of a stage. In the 128-byte swizzle, unit u of row r lies at unit u ^ (r % 8):
  // of the rows that a lane copies, every other one has the third bit of r set.
  __device__ void start_rows(int slot, int k, int rows) {
    constexpr int kRowBytes = V.block_k * 2;
    constexpr int kUnits = kRowBytes / 16;
    static_assert(kRowsAtOnce * kUnits == 32 && kUnits == 2 * kRowsAtOnce);
    const int row = lane_ / kUnits;
    const int unit = lane_ % kUnits;
    const unsigned char* from = args_.a_base + (k * kUnits + unit) * 16;
    asm("" : "+l"(from));  // added up once: else every copy adds the base
    const auto even = static_cast<std::uint32_t>(__cvta_generic_to_shared(smem_.a_stage(slot))) +
                      static_cast<std::uint32_t>(row * kRowBytes + (unit ^ row) * 16);
    const std::uint32_t odd = even ^ (kRowsAtOnce * 16);
    const auto* row_at = reinterpret_cast<const uint4*>(control_.row_at[row]);
    constexpr int kStep = kRowsAtOnce * kRowBytes;
    constexpr int kTogether = 2;  // loads of places: behind a copy, one would wait for its turn
    constexpr int kRowsOfRound = kRowsAtOnce * 4 * kTogether;
#pragma unroll 2
    for (int round = 0; round < rows / kRowsOfRound; ++round) {
      uint4 at[kTogether];
#pragma unroll
      for (int i = 0; i < kTogether; ++i)
        at[i] = row_at[round * kTogether + i];
#pragma unroll
      for (int i = 0; i < kTogether; ++i) {
        const std::uint32_t to = (round * kTogether + i) * 4 * kStep;
        copy_unit(even + to, from + std::uint64_t{at[i].x} * 16);
        copy_unit(odd + to + kStep, from + std::uint64_t{at[i].y} * 16);
        copy_unit(even + to + 2 * kStep, from + std::uint64_t{at[i].z} * 16);
        copy_unit(odd + to + 3 * kStep, from + std::uint64_t{at[i].w} * 16);
      }
    }
  }

  // PTX ISA, "cp.async": past L1, which is not coherent, and the neighbouring piece of the row, which
  // the next stage reads, comes to L2 with it.
  __device__ static void copy_unit(std::uint32_t to, const unsigned char* from) {
    asm volatile("cp.async.cg.shared.global.L2::256B [%0], [%1], 16;" ::"r"(to), "l"(from));
  }

  // The lanes' copies of a stage, when they have landed (PTX ISA, "cp.async.mbarrier.arrive"; `noinc`: the
  // barrier counts on it), and what the first lane wrote.
  __device__ void arrive_all(int slot) {
    const auto landed =
        static_cast<std::uint32_t>(__cvta_generic_to_shared(&control_.landed[slot]));
    asm volatile("cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%0];" ::"r"(landed) : "memory");
    if (leads())
      arrive(control_.landed[slot]);
  }

  int lane_;
};

// By one thread, until it has passed the stop tile on.
template <GemmVariant V>
__device__ inline void relay_stages(const GroupedGemmArgs& args, GemmSmem<V> smem) {
  GemmControl<V>& control = smem.control();
  RingCursor<V.stages> cursor;
  for (bool stops = false; !stops;) {
    for (int k = 0; k < args.k_steps && !stops; ++k) {
      wait_phase(control.landed[cursor.slot], cursor.parity);
      stops = k == 0 && control.stage_tile[cursor.slot].row_block == kStop;
      // Orders the copies' writes, which this thread has waited for, before wgmma's reads, behind `full`.
      ptx::fence_proxy_async(ptx::space_shared);
      arrive(control.full[cursor.slot]);
      cursor.advance();
    }
  }
}

template <GemmVariant V, class Gate, class Probe>
__device__ inline void gather_tiles(const GroupedGemmArgs& args, GemmSmem<V> smem, Gate& gate,
                                    Probe& probe, int worker, int workers) {
  const bool leader = threadIdx.x % 32 == 0;
  GatheringProducer<V> producer(args, smem);
  Schedule<V> schedule(args, smem.control(), workers);
  TileJob job{};

  int tile = worker;
  bool found = schedule.find(tile, job);
  await_prepared<V, Gate>(smem.control());
  for (; found; found = schedule.find(tile, job)) {
    if (leader)
      probe.record(ProbePoint::kGateBegin, job.row_block, job.n_tile);
    const bool open = producer.open(gate, job);
    if (leader)
      probe.record(ProbePoint::kGateEnd, job.row_block, job.n_tile);
    if (!open)
      break;
    producer.load(job);
    const int next = leader ? schedule.after(tile) : 0;
    tile = __shfl_sync(~0u, next, 0);
  }
  producer.stop();
  __syncwarp();
}

}  // namespace fusescope::kernels
