// The grouped GEMM mainloop: persistent, warp-specialised, for any kernel that wants it.
//
//   template <GemmVariant V, class Gate, class Signal, class Probe>
//   __device__ void grouped_gemm(args, smem, gate, signal, probe, worker, workers)
//
// Contract
//   - All gemm_threads(V) threads of the block call it, with the same arguments; the block has exactly
//     so many threads, one-dimensional, and the kernel has __launch_bounds__(gemm_threads(V), 1).
//     It may sit in one branch of a kernel whose other blocks do something else.
//   - `args` is part of the kernel's __grid_constant__ parameter (the copy engine reads the tensor
//     maps there); `smem` is dynamic shared memory of shared_bytes(V), 1024-byte aligned.
//   - Worker w of n begins with tile w of the order and takes growing numbers (gemm_schedule.cuh);
//     results depend neither on n nor on who computes which tile. All n workers must come, or the
//     counter args.next_tile is left as after an abort.
//   - gate, signal and probe: gemm_hooks.cuh. Each thread passes its own objects.
//   - Uses named barriers kGemmBarrier (all threads, at the start and at the end),
//     kFirstConsumerBarrier and the one behind it, and never barrier 0; the others are free. After it
//     returns no copy is in flight, all of this block's tiles are in global memory, and the first
//     reusable_bytes(V) of `smem` may be reused by generic accesses, or by bulk copies after a
//     fence.proxy.async. The control area behind them holds live mbarriers: leave it alone.
//   - Registers per thread are at the end what they were at the start.
//   - At most once per launch and block.
#pragma once

#include "gemm_args.hpp"
#include "gemm_consumer.cuh"
#include "gemm_gather.cuh"
#include "gemm_hooks.cuh"
#include "gemm_producer.cuh"
#include "gemm_smem.cuh"
#include "gemm_storer.cuh"
#include "mma_consumer.cuh"
#include "mma_storer.cuh"
#include "transposed_consumer.cuh"
#include "transposed_storer.cuh"

namespace fusescope::kernels {

inline constexpr int kGemmBarrier = 1;  // the named barrier that is taken

// Registers of the wgmma form, per thread. mma.sync's are what the launch bounds leave, for all warps alike.
inline constexpr int kGemmRegisters = 168;  // at launch: 65536 / 384, rounded down to 8
// A producer that gathers needs more than one that names boxes.
template <GemmVariant V>
inline constexpr int kCopyRegisters = V.gathers ? 56 : 40;
template <GemmVariant V>
inline constexpr int kConsumerRegisters = (kGemmRegisters * 3 - kCopyRegisters<V>) / 2;

// PTX ISA, "setmaxnreg": moves registers between warpgroups; all warps of a warpgroup execute it.
template <int Registers>
__device__ inline void shrink_registers() {
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(Registers));
}
template <int Registers>
__device__ inline void grow_registers() {
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(Registers));
}

template <GemmVariant V>
__device__ inline void meet_block() {
  __barrier_sync_count(kGemmBarrier, gemm_threads(V));
}

// By all threads of the consumer warps.
template <GemmVariant V, class Gate>
__device__ inline void prepare_block(GemmControl<V>& control, Gate& gate) {
  if constexpr (requires { gate.prepare(); }) {
    gate.prepare();
    __syncwarp();
    if (threadIdx.x % 32 == 0)
      arrive(control.prepared);
  }
}

template <GemmVariant V, class Gate, class Signal, class Probe>
__device__ __forceinline__ void run_wgmma_roles(const GroupedGemmArgs& args,
                                                const GemmSmem<V>& smem, Gate& gate, Signal& signal,
                                                Probe& probe, int worker, int workers) {
  const int group = static_cast<int>(threadIdx.x) / 128;
  const int warp = static_cast<int>(threadIdx.x) % 128 / 32;
  if (group < kConsumerGroups) {
    prepare_block<V>(smem.control(), gate);
    grow_registers<kConsumerRegisters<V>>();
    if constexpr (V.transposed) {
      consume_transposed_tiles<V>(args, smem, probe, group);
    } else {
      consume_tiles<V>(args, smem, probe, group);
    }
    meet_block<V>();
    shrink_registers<kGemmRegisters>();
  } else {
    shrink_registers<kCopyRegisters<V>>();
    if (warp == 0) {
      if constexpr (V.gathers) {
        gather_tiles<V>(args, smem, gate, probe, worker, workers);
      } else if (threadIdx.x % 32 == 0) {
        produce_tiles<V>(args, smem, gate, probe);
      }
      __syncwarp();
    } else if (warp <= kConsumerGroups) {
      if (threadIdx.x % 32 == 0) {
        if constexpr (V.transposed) {
          store_transposed_tiles<V>(args, smem, signal, probe, warp - 1);
        } else {
          store_tiles<V>(args, smem, signal, probe, warp - 1);
        }
      }
      __syncwarp();
    } else if constexpr (V.gathers) {
      if (threadIdx.x % 32 == 0)
        relay_stages<V>(args, smem);
      __syncwarp();
    } else {
      schedule_tiles<V>(args, smem, gate, worker, workers);
    }
    // Not before the consumers are done: a warp that took its registers back while they still wait
    // for theirs would starve them.
    meet_block<V>();
    grow_registers<kGemmRegisters>();
  }
}

template <GemmVariant V, class Gate, class Signal, class Probe>
__device__ inline void run_mma_roles(const GroupedGemmArgs& args, const GemmSmem<V>& smem,
                                     Gate& gate, Signal& signal, Probe& probe, int worker,
                                     int workers) {
  constexpr int kProducerWarp = copy_thread(V) / 32;
  const int warp = static_cast<int>(threadIdx.x) / 32;
  if (warp < kProducerWarp) {
    prepare_block<V>(smem.control(), gate);
    mma_consume_tiles<V>(args, smem, probe);
  } else if (threadIdx.x == copy_thread(V)) {
    produce_tiles<V>(args, smem, gate, probe);
  } else if (threadIdx.x == copy_thread(V) + 32) {
    mma_store_tiles<V>(args, smem, signal, probe);
  } else if (warp == kProducerWarp + 2) {
    schedule_tiles<V>(args, smem, gate, worker, workers);
  }
  __syncwarp();
  meet_block<V>();
}

template <GemmVariant V, class Gate, class Signal, class Probe>
__device__ __forceinline__ void grouped_gemm(const GroupedGemmArgs& args, unsigned char* smem_base,
                                             Gate& gate, Signal& signal, Probe& probe, int worker,
                                             int workers) {
  static_assert(is_valid(V), "the tile variant breaks its validity rule (gemm_variants.hpp)");
  const GemmSmem<V> smem{smem_base};
  if (threadIdx.x == 0)
    init_control<V>(smem.control());
  meet_block<V>();
  if constexpr (V.mainloop == Mainloop::kMma) {
    run_mma_roles<V>(args, smem, gate, signal, probe, worker, workers);
  } else {
    run_wgmma_roles<V>(args, smem, gate, signal, probe, worker, workers);
  }
}

}  // namespace fusescope::kernels
