#include "kernels/prologue.hpp"

#include <algorithm>
#include <stdexcept>

#include "kernels/bounded_wait.cuh"
#include "kernels/counter_seeds.cuh"
#include "kernels/cuda_check.hpp"
#include "kernels/device_barrier.hpp"
#include "kernels/follow.cuh"
#include "kernels/recording.cuh"
#include "kernels/schedule_build.cuh"

namespace fusescope::kernels {
namespace {

static_assert(kMostExperts <= kMostStampedId);

constexpr int kMostClusters = 16;  // on 132 SMs: fewer would be late with the copy-in
constexpr int kScanBytes = 4096;   // of shared memory; the scans' own

__device__ std::uint64_t copied_target(std::uint64_t iteration) {
  return iteration * kBarrierPoints + static_cast<std::uint64_t>(BarrierPoint::copied);
}

// --- ids exchange --------------------------------------------------------------------------------

// Part of this rank's ids, to all ranks.
__device__ void send_ids(const LayerArgs& layer, std::uint64_t iteration) {
  if (layer.faults.loses(Wait::ids))
    return;
  const int hits = layer.tokens_per_rank * layer.topk;
  const std::int64_t first = static_cast<std::int64_t>(layer.rank) * hits;
  constexpr int kStride = kScheduleBlocks * kPrologueThreads;
  constexpr int kAhead = 4;  // loads under way
  const int thread =
      static_cast<int>(blockIdx.x) * kPrologueThreads + static_cast<int>(threadIdx.x);
  for (int base = thread; base < hits; base += kStride * kAhead) {
    std::int32_t ids[kAhead];
#pragma unroll
    for (int n = 0; n < kAhead; ++n) {
      if (base + n * kStride < hits)
        ids[n] = layer.own_ids[base + n * kStride];
    }
#pragma unroll
    for (int n = 0; n < kAhead; ++n) {
      const int i = base + n * kStride;
      if (i >= hits)
        break;
      for (int r = 0; r < layer.ranks; ++r) {
        SystemAtomic<std::uint64_t>(layer.shared[r].stamped_ids[first + i])
            .store(stamp_id(ids[n], iteration), cuda::memory_order_relaxed);
      }
    }
  }
}

// --- copy-in: blocks behind the cluster ----------------------------------------------------------

// Part of this rank's weights, to all ranks. The jobs that read them come behind the peers' waits for tokens.
__device__ void send_weights(const LayerArgs& layer, unsigned thread, unsigned threads) {
  const unsigned hits = static_cast<unsigned>(layer.tokens_per_rank) * layer.topk;
  const std::int64_t first = static_cast<std::int64_t>(layer.rank) * hits;
  for (unsigned i = thread; i < hits; i += threads) {
    const float weight = layer.own_weights[i];
    for (int r = 0; r < layer.ranks; ++r)
      layer.shared[r].weights[first + i] = weight;
  }
}

// Whether this is the last block to have copied its rows; all threads learn it. Orders the rows and weights of
// all blocks, each joined by a barrier, before what the last block's threads do next.
__device__ bool is_last(Counters& counters, unsigned blocks) {
  __syncthreads();
  bool last = false;
  if (threadIdx.x == 0) {
    last = GpuAtomic<std::uint32_t>(counters.copied).fetch_add(1, cuda::memory_order_acq_rel) ==
           blocks - 1;
  }
  return __syncthreads_or(last) != 0;
}

// This rank's place among the tokens that rank r gathers from.
__device__ uint4* pushed_to(const LayerArgs& layer, int r, unsigned units) {
  return reinterpret_cast<uint4*>(layer.shared[r].all_tokens) +
         static_cast<std::int64_t>(layer.rank) * units;
}

// Nobody reads the tokens of the last iteration any more, here or where they are pushed to: this rank's final
// reduce of it has seen the watermarks that every rank raised after its kernel 1.
template <class Records>
__device__ void copy_in(const LayerArgs& layer) {
  const int thread = static_cast<int>(threadIdx.x);
  if constexpr (Records::kOn) {
    if (thread == 0)
      stamp_begin(layer.records, Phase::copy_in);
  }
  const std::uint64_t iteration = layer.counters->iteration + 1;
  const unsigned blocks = gridDim.x - kScheduleBlocks;
  // Below 2^31, since the units of all rows together are (engine/cuda/plan).
  const unsigned units = static_cast<unsigned>(layer.tokens_per_rank) * (layer.hidden / 8);
  const unsigned stride = blocks * kPrologueThreads;
  const unsigned first = (blockIdx.x - kScheduleBlocks) * kPrologueThreads + threadIdx.x;
  send_weights(layer, first, stride);
  const auto* from = reinterpret_cast<const uint4*>(layer.input);
  auto* to = reinterpret_cast<uint4*>(layer.copy_in_to);
  // One load of a thread at a time: with five the ids, which all of this must not hold up, wait 2.5 us longer in the
  // memory's queues.
#pragma unroll 1
  for (unsigned at = first; at < units; at += stride) {
    const uint4 unit = from[at];
    if (layer.tokens_pushed) {
      for (int r = 0; r < layer.ranks; ++r) {
        if (r != layer.rank)
          pushed_to(layer, r, units)[at] = unit;
      }
    }
    to[at] = unit;
  }
  if (is_last(*layer.counters, blocks)) {
    if (thread == 0)
      layer.counters->copied = 0;
    if (thread < layer.ranks && !layer.faults.loses(Wait::barrier)) {
      // Releases all blocks' rows and weights, and what this rank read in the last iteration (its planes), to the
      // peers' acquire of the flag.
      raise_flag(layer.shared[thread].flags->barrier[layer.rank], copied_target(iteration));
    }
  }
  if constexpr (Records::kOn) {
    if (thread == 0)
      stamp_end(layer.records, Phase::copy_in);
  }
}

// --- the cluster ---------------------------------------------------------------------------------

template <class Records>
__device__ void build_schedule(const PrologueArgs& args, unsigned char* smem,
                               std::uint64_t iteration) {
  const LayerArgs& layer = args.layer;
  const int thread = static_cast<int>(threadIdx.x);
  ScheduleBuild build(args, smem);
  build.prepare();
  clear_counters(layer, static_cast<int>(blockIdx.x) * kPrologueThreads + thread,
                 kScheduleBlocks * kPrologueThreads);
  // Without ids, after a wait was given up, the build runs on what is there, so that no block is left
  // waiting for another and every index that follows is in bounds.
  build.take_ids(iteration);
  if constexpr (Records::kOn) {
    __syncthreads();
    if (thread == 0) {
      stamp_end(layer.records, Phase::ids_exchange);
      stamp_begin(layer.records, Phase::schedule_build);
    }
  }
  build.run();
  if constexpr (Records::kOn) {
    __syncthreads();
    if (thread == 0)
      stamp_end(layer.records, Phase::schedule_build);
  }
}

// By the first block: all ranks' tokens and weights are there.
template <class Records>
__device__ void meet(const LayerArgs& layer, std::uint64_t iteration) {
  const int r = static_cast<int>(threadIdx.x);
  if (r < layer.ranks)
    wait_for_flag(layer.guard, Wait::barrier, r, layer.mine().flags->barrier[r],
                  copied_target(iteration));
  // This rank's own flag was among them: all threads that copy had read the iteration's number before it
  // was raised. Those of the cluster had before its barriers.
  __syncthreads();
  if (r == 0) {
    layer.counters->iteration = iteration;
    if constexpr (Records::kOn)
      stamp_end(layer.records, Phase::copy_in);
  }
}

template <class Records>
__global__ void __launch_bounds__(kPrologueThreads, 1)
    prologue_kernel(const __grid_constant__ PrologueArgs args) {
  extern __shared__ __align__(16) unsigned char smem[];
  const LayerArgs& layer = args.layer;
  let_next_begin();
  if (blockIdx.x >= kScheduleBlocks) {
    copy_in<Records>(layer);
    return;
  }
  const std::uint64_t iteration = layer.counters->iteration + 1;
  if constexpr (Records::kOn) {
    if (args.steps.send && threadIdx.x == 0)
      stamp_begin(layer.records, Phase::ids_exchange);
  }
  if (args.steps.send)
    send_ids(layer, iteration);
  if (args.steps.build)
    build_schedule<Records>(args, smem, iteration);
  if (args.steps.meet && blockIdx.x == 0)
    meet<Records>(layer, iteration);
}

int warps() {
  return kScheduleBlocks * kPrologueWarps;
}

int tokens_per_warp(const TableSizes& sizes) {
  return (sizes.tokens() + warps() - 1) / warps();
}

std::int64_t hits_per_warp(const TableSizes& sizes) {
  return static_cast<std::int64_t>(tokens_per_warp(sizes)) * sizes.topk;
}

std::int64_t shared_bytes(const TableSizes& sizes) {
  return BuildLayout(static_cast<std::uint32_t>(sizes.experts),
                     static_cast<std::uint32_t>(sizes.max_row_blocks()))
      .stash;
}

// What a block of the current device can have beside the scans; where there is none, an sm_90's.
std::int64_t most_shared_bytes() {
  int device = 0;
  int bytes = 227 * 1024;
  if (cudaGetDevice(&device) != cudaSuccess ||
      cudaDeviceGetAttribute(&bytes, cudaDevAttrMaxSharedMemoryPerBlockOptin, device) !=
          cudaSuccess) {
    static_cast<void>(cudaGetLastError());
  }
  return bytes - kScanBytes;
}

std::int64_t stash_bytes_per_block(const TableSizes& sizes) {
  return hits_per_warp(sizes) * kPrologueWarps * 4;
}

bool stash_is_shared(const TableSizes& sizes) {
  return shared_bytes(sizes) + stash_bytes_per_block(sizes) <= most_shared_bytes();
}

std::size_t marks_bytes(const TableSizes& sizes) {
  return static_cast<std::size_t>(sizes.max_row_blocks()) * 2 * (kRowBlock / 8);
}

}  // namespace

std::size_t prologue_workspace_bytes(const TableSizes& sizes) {
  const std::size_t stash =
      stash_is_shared(sizes)
          ? 0
          : static_cast<std::size_t>(stash_bytes_per_block(sizes)) * kScheduleBlocks;
  return marks_bytes(sizes) + stash;
}

PrologueArgs make_prologue_args(const LayerArgs& layer, const TableSizes& sizes,
                                SlotOrder slot_order, void* workspace) {
  PrologueArgs args;
  args.layer = layer;
  args.slot_order = slot_order;
  args.tokens_per_warp = tokens_per_warp(sizes);
  args.marks = static_cast<std::uint32_t*>(workspace);
  if (!stash_is_shared(sizes))
    args.stash =
        reinterpret_cast<std::int32_t*>(static_cast<char*>(workspace) + marks_bytes(sizes));
  args.shared_bytes = static_cast<std::int32_t>(
      shared_bytes(sizes) + (stash_is_shared(sizes) ? stash_bytes_per_block(sizes) : 0));
  return args;
}

std::string why_no_prologue(const TableSizes& sizes) {
  if (sizes.experts > kMostExperts) {
    return "schedule fused counts the hits of at most " + std::to_string(kMostExperts) +
           " experts, and the shape has " + std::to_string(sizes.experts) +
           ": set schedule to device";
  }
  if (shared_bytes(sizes) > most_shared_bytes()) {
    return "schedule fused needs " + std::to_string(shared_bytes(sizes)) +
           " bytes of a block's shared memory for " + std::to_string(sizes.hits()) + " hits on " +
           std::to_string(sizes.experts) + " experts, and a block has " +
           std::to_string(most_shared_bytes()) + ": set schedule to device";
  }
  return "";
}

void launch_prologue(const PrologueArgs& args, cudaStream_t stream) {
  const auto kernel =
      args.layer.is_recorded() ? prologue_kernel<Recording> : prologue_kernel<Silent>;
  FUSESCOPE_CUDA(
      cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, args.shared_bytes));
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(kMostClusters * kScheduleBlocks);
  config.blockDim = dim3(kPrologueThreads);
  config.dynamicSmemBytes = static_cast<std::size_t>(args.shared_bytes);
  config.stream = stream;
  cudaLaunchAttribute cluster{};
  cluster.id = cudaLaunchAttributeClusterDimension;
  cluster.val.clusterDim = {kScheduleBlocks, 1, 1};
  config.attrs = &cluster;
  config.numAttrs = 1;
  if (args.steps.build) {
    // As many as are resident together, so that no block holds the SMs that one it waits for needs.
    int resident = 0;
    FUSESCOPE_CUDA(cudaOccupancyMaxActiveClusters(&resident, kernel, &config));
    if (resident < 2) {
      throw std::invalid_argument("schedule fused: this device holds fewer than two clusters of " +
                                  std::to_string(kScheduleBlocks) +
                                  " blocks at once; set schedule to device");
    }
    config.gridDim.x = static_cast<unsigned>(std::min(resident, kMostClusters) * kScheduleBlocks);
  } else {
    config.gridDim.x = kScheduleBlocks;
  }
  FUSESCOPE_CUDA(cudaLaunchKernelEx(&config, kernel, args));
}

}  // namespace fusescope::kernels
