// Producer role: one thread fills the ring, tile by tile, with bulk tensor copies. Which tiles those are, the
// scheduler finds out (gemm_scheduler.cuh).
#pragma once

#include <cstdint>

#include "gemm_args.hpp"
#include "gemm_hooks.cuh"
#include "gemm_scheduler.cuh"
#include "gemm_smem.cuh"

namespace fusescope::kernels {

template <GemmVariant V>
class Producer {
 public:
  __device__ Producer(const GroupedGemmArgs& args, GemmSmem<V> smem)
      : args_(args), smem_(smem), control_(smem.control()) {}

  // Waits for the gate, which was shut; false is abort. Loads the weights of the first stages first.
  template <class Gate>
  __device__ bool open(Gate& gate, const TileJob& job) {
    if constexpr (requires { gate.is_open(0); })
      load_weights_ahead(job);
    for (int block = 0; block < row_blocks_of(V, job); ++block) {
      if (!gate.wait(job.row_block + block))
        return false;
    }
    return true;
  }

  // On its way, asks for the next tile.
  __device__ void load(const TileJob& job) {
    const int ask_at = max(args_.k_steps - kAskedAhead, 0);
    for (int k = 0; k < args_.k_steps; ++k) {
      if (k == ask_at)
        arrive(control_.asked);
      const int slot = cursor_.slot;
      const bool early = k < early_;
      if (!early)
        wait_free(control_.empty[cursor_.slot], cursor_.parity);
      // The header is a generic store; consumers read it after acquiring `full`, which the arrive
      // below releases.
      if (k == 0)
        control_.stage_tile[slot] = TileHeader::of(job);
      const int bytes = a_bytes(job) + (early ? 0 : b_stage_bytes(V));
      ptx::mbarrier_arrive_expect_tx(ptx::sem_release, ptx::scope_cta, ptx::space_shared,
                                     &control_.full[slot], bytes);
      load_a(slot, k, job);
      if (!early)
        load_b(slot, k, job);
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

 protected:
  // Stages before a tile's last that the next is asked for: about as many as are loaded meanwhile.
  static constexpr int kAskedAhead = 4;
  static constexpr int kHalfBytes = kConsumerRows * V.block_k * 2;

  __device__ static int a_bytes(const TileJob& job) {
    if constexpr (V.transposed) {
      return steps_of(V, job.rows) * kRowStep * V.block_k * 2;
    } else {
      return job.halves() * kHalfBytes;
    }
  }

  __device__ void load_a(int slot, int k, const TileJob& job) {
    if constexpr (V.transposed) {
      // In the parts in which they are multiplied. Not one of two, even where one had all rows: of a second copy
      // under a condition, ptxas 13.0.88 took a coordinate under the predicate before it had set the predicate.
      const int steps = steps_of(V, job.rows);
      const int in_first = first_part(V, steps);
      load_steps(slot, k, job, 0, in_first);
      if constexpr (blocks_per_tile(V) == 2)
        load_steps(slot, k, job, in_first, steps - in_first);
    } else {
      for (int half = 0; half < job.halves(); ++half) {
        const int shift = V.shifts() ? empty_rows(job.rows, half) : 0;
        ptx::cp_async_bulk_tensor(ptx::space_cluster, ptx::space_global,
                                  smem_.a_stage(slot) + half * kHalfBytes, &args_.a[0],
                                  {k * V.block_k, -shift, job.row_block * kConsumerGroups + half},
                                  &control_.full[slot]);
      }
    }
  }

  __device__ void load_steps(int slot, int k, const TileJob& job, int first, int count) {
    ptx::cp_async_bulk_tensor(
        ptx::space_cluster, ptx::space_global,
        smem_.a_stage(slot) + first * kRowStep * V.block_k * 2, &args_.a[count - 1],
        {k * V.block_k, job.row_block * kBlockRows + first * kRowStep}, &control_.full[slot]);
  }

  // Of as many first stages as are free.
  __device__ void load_weights_ahead(const TileJob& job) {
    RingCursor<V.stages> ahead = cursor_;
    while (early_ < V.stages && early_ < args_.k_steps &&
           is_free(control_.empty[ahead.slot], ahead.parity)) {
      start_weights(ahead.slot, early_, job);
      ++early_;
      ahead.advance();
    }
  }

  // Without arriving at the stage's barrier: rows are still to come.
  __device__ void start_weights(int slot, int k, const TileJob& job) {
    ptx::mbarrier_expect_tx(ptx::sem_relaxed, ptx::scope_cta, ptx::space_shared,
                            &control_.full[slot], b_stage_bytes(V));
    load_b(slot, k, job);
  }

  __device__ void load_b(int slot, int k, const TileJob& job) {
    if constexpr (V.epilogue == Epilogue::kSiluMul && blocks_per_tile(V) == 2) {
      // Eight rows of gate, the matching eight of up, and so on: one thread then holds both factors.
      ptx::cp_async_bulk_tensor(
          ptx::space_cluster, ptx::space_global, smem_.b_stage(slot), &args_.b,
          {k * V.block_k, 0, 0, job.n_tile * (V.out_cols() / 8), job.expert}, &control_.full[slot]);
    } else if constexpr (V.epilogue == Epilogue::kSiluMul) {
      // Gate rows above, the matching up rows below: one wgmma then yields both factors.
      const int row = job.n_tile * (V.block_n / 2);
      copy_b(smem_.b_stage(slot), slot, k, row, job.expert);
      copy_b(smem_.b_stage(slot) + b_stage_bytes(V) / 2, slot, k, args_.up_offset + row,
             job.expert);
    } else {
      copy_b(smem_.b_stage(slot), slot, k, job.n_tile * V.block_n, job.expert);
    }
  }

  __device__ void copy_b(unsigned char* to, int slot, int k, int row, int expert) {
    ptx::cp_async_bulk_tensor(ptx::space_cluster, ptx::space_global, to, &args_.b,
                              {k * V.block_k, row, expert}, &control_.full[slot]);
  }

  const GroupedGemmArgs& args_;
  GemmSmem<V> smem_;
  GemmControl<V>& control_;
  RingCursor<V.stages> cursor_;
  int early_ = 0;  // stages ahead of the cursor whose weights are already on their way
};

// Until the ring is the producer's.
template <GemmVariant V, class Gate>
__device__ inline void await_prepared(GemmControl<V>& control) {
  if constexpr (requires(Gate & gate) { gate.prepare(); })
    wait_phase(control.prepared, 0);
}

template <GemmVariant V, class Gate, class Probe>
__device__ inline void produce_tiles(const GroupedGemmArgs& args, GemmSmem<V> smem, Gate& gate,
                                     Probe& probe) {
  GemmControl<V>& control = smem.control();
  Producer<V> producer(args, smem);
  await_prepared<V, Gate>(control);
  for (std::uint32_t parity = 0;; parity ^= 1) {
    wait_phase(control.found, parity);
    const NextTile next = control.next;
    if (next.job.row_block == kStop)
      break;
    probe.record(ProbePoint::kGateBegin, next.job.row_block, next.job.n_tile);
    const bool open = next.is_open || producer.open(gate, next.job);
    probe.record(ProbePoint::kGateEnd, next.job.row_block, next.job.n_tile);
    if (!open) {
      control.gave_up = true;
      arrive(control.asked);
      break;
    }
    producer.load(next.job);
  }
  producer.stop();
}

}  // namespace fusescope::kernels
