#pragma once
// Device side of kernel 2: the blocks' ways through GEMM and jobs.

#include "kernels/combine_job.cuh"
#include "kernels/counter_gate.cuh"
#include "kernels/follow.cuh"
#include "kernels/gemm/grouped_gemm.cuh"
#include "kernels/gemm_combine_push.hpp"
#include "kernels/recording.cuh"
#include "kernels/sm_clock.cuh"

namespace fusescope::kernels {

// Named barriers. The GEMM takes kGemmBarrier, and its warps leave at different times, so that a
// block meets after it on a barrier that the GEMM never counts on; mixing the two would be undefined.
inline constexpr unsigned kJoinBarrier = 2;
static_assert(kJoinBarrier != kGemmBarrier &&
              kFirstJobBarrier + kJobGroups <= kFirstConsumerBarrier);

template <class Records>
__device__ inline void run_jobs(const GemmCombinePushArgs& args, unsigned char* smem,
                                int bytes_for_group) {
  const int block = static_cast<int>(blockIdx.x);
  const bool joins = block < args.compute_blocks;
  const int group = static_cast<int>(threadIdx.x) / kJobThreads;
  JobRunner<Records>(args.layer, args.combine, smem + group * bytes_for_group,
                     kFirstJobBarrier + group,
                     {joins ? Family::combine_joined : Family::combine_jobs,
                      joins ? block : block - args.compute_blocks, group})
      .run_dispenser();
}

// The variant travels as its index: nvcc takes no class-typed template arguments on kernels.
template <int Index, class Records>
__global__ void __launch_bounds__(gemm_threads(kGemmVariants[Index]), 1)
    gemm_combine_push_kernel(const __grid_constant__ GemmCombinePushArgs args) {
  extern __shared__ __align__(1024) unsigned char smem[];
  const int block = static_cast<int>(blockIdx.x);
  const bool programmatic = args.layer.launch == LaunchOrder::programmatic;
  const EndsLast ends_last(programmatic);
  if (programmatic && !follow_kernel_1(args.layer))
    return;
  const typename Records::PhaseStamps stamps(args.layer.records, Phase::gemm_combine_push);
  if (block < args.compute_blocks) {
    const SmClock clock(args.layer.clock);
    if (args.announces_residency && threadIdx.x == 0 && block != args.layer.faults.lost_residency) {
      GpuAtomic<std::uint32_t>(args.layer.counters->resident)
          .fetch_add(1, cuda::memory_order_relaxed);
    }
    const LayerArgs& layer = args.layer;
    CounterGate gate{layer.guard, layer.computed, args.open_at, Wait::computed,
                     aborted(layer.guard)};
    CounterSignal signal{layer.done, layer.faults.lost_tile};
    typename Records::TileProbe probe(args.layer.records, Family::combine_tiles, block,
                                      copy_thread(kGemmVariants[Index]));
    grouped_gemm<kGemmVariants[Index]>(args.gemm, smem, gate, signal, probe, block,
                                       args.compute_blocks);
    if (!args.runs_jobs || !args.all_hands)
      return;
    // Orders the GEMM's last uses of shared memory, generic ones and the copy engine's, before the bulk
    // copies of the jobs' pieces: the proxy fence here, in each thread that wrote, then the barrier.
    ptx::fence_proxy_async(ptx::space_shared);
    __barrier_sync_count(kJoinBarrier, gemm_threads(kGemmVariants[Index]));
  }
  if (args.runs_jobs)
    run_jobs<Records>(args, smem, bytes_for_job_group(kGemmVariants[Index]));
}

}  // namespace fusescope::kernels
