// Producer role: one warp walks the block's tiles in slot order and fills the ring. Its first lane
// asks the gate and issues the bulk tensor copies.
#pragma once

#include <cstdint>

#include "gemm_args.hpp"
#include "gemm_hooks.cuh"
#include "gemm_schedule.cuh"
#include "gemm_smem.cuh"

namespace fusescope::kernels {

template <GemmVariant V>
class Producer {
 public:
  __device__ Producer(const GroupedGemmArgs& args, GemmSmem<V> smem)
      : args_(args), smem_(smem), control_(smem.control()) {}

  // Waits for the gate; false is abort. While it is shut, loads the weights of the first stages.
  template <class Gate>
  __device__ bool open(Gate& gate, const TileJob& job) {
    if constexpr (requires { gate.is_open(0); }) {
      if (gate.is_open(job.row_block))
        return true;
      RingCursor<V.stages> ahead = cursor_;
      while (early_ < V.stages && early_ < args_.k_steps &&
             is_free(control_.empty[ahead.slot], ahead.parity)) {
        ptx::mbarrier_expect_tx(ptx::sem_relaxed, ptx::scope_cta, ptx::space_shared,
                                &control_.full[ahead.slot], b_stage_bytes(V));
        load_b(ahead.slot, early_, job);
        ++early_;
        ahead.advance();
      }
    }
    return gate.wait(job.row_block);
  }

  __device__ void load(const TileJob& job, bool output) {
    for (int k = 0; k < args_.k_steps; ++k) {
      const int slot = cursor_.slot;
      const bool early = k < early_;
      if (!early)
        wait_free(control_.empty[cursor_.slot], cursor_.parity);
      // The header is a generic store; consumers read it after acquiring `full`, which the arrive
      // below releases.
      if (k == 0)
        control_.stage_tile[slot] = {job.row_block, output ? job.n_tile : kNoOutput};
      const int bytes = a_stage_bytes(V) + (early ? 0 : b_stage_bytes(V));
      ptx::mbarrier_arrive_expect_tx(ptx::sem_release, ptx::scope_cta, ptx::space_shared,
                                     &control_.full[slot], bytes);
      ptx::cp_async_bulk_tensor(ptx::space_cluster, ptx::space_global, smem_.a_stage(slot),
                                &args_.a, {k * V.block_k, job.row_block * kBlockRows},
                                &control_.full[slot]);
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

 private:
  // B arrives in one box, or in two halves: the fused activation takes gate rows above and the
  // matching up rows below, so that one wgmma yields both factors; a cluster shares the work.
  __device__ void load_b(int slot, int k, const TileJob& job) {
    unsigned char* const to = smem_.b_stage(slot);
    if constexpr (b_boxes(V) == 1) {
      copy_b(to, slot, k, job.n_tile * V.block_n, job.expert);
    } else {
      constexpr bool kFused = V.epilogue == Epilogue::kSiluMul;
      const int first = job.n_tile * (kFused ? V.block_n / 2 : V.block_n);
      const int second = first + (kFused ? args_.up_offset : V.block_n / 2);
      unsigned char* const to_second = to + b_stage_bytes(V) / 2;
      if (V.cluster == 2 && job.shared) {
        // Each block of the cluster fetches one half for both. The slot is free in both, because
        // the consumers of both release it here; the bytes count on each block's own `full`.
        const bool upper = cluster_rank<V>() == 0;
        multicast_b(upper ? to : to_second, slot, k, upper ? first : second, job.expert);
      } else {
        copy_b(to, slot, k, first, job.expert);
        copy_b(to_second, slot, k, second, job.expert);
      }
    }
  }

  __device__ void copy_b(unsigned char* to, int slot, int k, int row, int expert) {
    ptx::cp_async_bulk_tensor(ptx::space_cluster, ptx::space_global, to, &args_.b,
                              {k * V.block_k, row, expert}, &control_.full[slot]);
  }

  __device__ void multicast_b(unsigned char* to, int slot, int k, int row, int expert) {
    constexpr std::uint16_t kBoth = 0b11;
    ptx::cp_async_bulk_tensor(ptx::space_cluster, ptx::space_global, to, &args_.b,
                              {k * V.block_k, row, expert}, &control_.full[slot], kBoth);
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
  Schedule<V> schedule(args, worker, workers);
  TileJob job{};
  bool aborted = false;

  while (schedule.next(job)) {
    if (leader) {
      probe.record(ProbePoint::kGateBegin, job.row_block, job.n_tile);
      aborted = aborted || !producer.open(gate, job);
      probe.record(ProbePoint::kGateEnd, job.row_block, job.n_tile);
      // A block of a cluster owes the other one its half of the weights: after an abort it goes on
      // without gates and without output, and ends when the tiles do.
      if (V.cluster > 1 || !aborted)
        producer.load(job, !aborted && !job.spare);
    }
    if (V.cluster == 1 && __shfl_sync(~0u, static_cast<int>(aborted), 0) != 0)
      break;
    __syncwarp();
  }
  if (leader)
    producer.stop();
  __syncwarp();
}

}  // namespace fusescope::kernels
