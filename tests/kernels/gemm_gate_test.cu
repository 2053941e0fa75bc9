// The mainloop inside a larger kernel, as the fused kernels use it: compute blocks behind a gate,
// helper blocks that bring the rows, reader blocks that follow the signals; and a gate that never
// opens.
#include <cuda/atomic>

#include "gemm_fixture.cuh"
#include "kernels/gemm/grouped_gemm.cuh"

namespace fusescope::kernels::testing {
namespace {

using Counter = cuda::atomic_ref<std::uint32_t, cuda::thread_scope_device>;

__device__ unsigned long long now_ns() {
  unsigned long long ns = 0;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(ns));
  return ns;
}

// Polls until the counter reaches the target, the deadline passes or somebody raised `aborted`.
__device__ bool bounded_wait(std::uint32_t& counter, std::uint32_t target, std::uint32_t& aborted,
                             unsigned long long patience_ns) {
  const unsigned long long deadline = now_ns() + patience_ns;
  while (Counter(counter).load(cuda::memory_order_acquire) < target) {
    if (now_ns() > deadline)
      Counter(aborted).store(1, cuda::memory_order_relaxed);
    if (Counter(aborted).load(cuda::memory_order_relaxed) != 0)
      return false;
    __nanosleep(64);
  }
  return true;
}

struct Flow {
  GroupedGemmArgs gemm;
  const unsigned char* source;  // rows before they arrive
  unsigned char* a;
  const unsigned char* d;
  unsigned char* d_copy;    // what the readers saw
  std::uint32_t* arrivals;  // per row block; open at 128
  std::uint32_t* done;      // per row block; complete at n_tiles
  std::uint32_t* aborted;
  unsigned long long patience_ns;
  int row_bytes;
  int d_row_bytes;
  int row_blocks;
  int lost_block;  // this block's rows never arrive; -1: all do
  int compute_blocks;
  int helper_blocks;
  int reader_blocks;
};

struct ArrivalGate {
  const Flow& flow;
  __device__ bool is_open(int block) const {
    if (Counter(flow.arrivals[block]).load(cuda::memory_order_acquire) < kBlockRows)
      return false;
    ptx::fence_proxy_async();  // rows: helpers' bulk stores, then this block's bulk tensor loads
    return true;
  }
  __device__ bool wait(int block) const {
    if (!bounded_wait(flow.arrivals[block], kBlockRows, *flow.aborted, flow.patience_ns))
      return false;
    ptx::fence_proxy_async();
    return true;
  }
};

// Without is_open: the producer then never loads weights ahead of the gate.
struct PlainGate {
  ArrivalGate gate;
  __device__ bool wait(int block) const { return gate.wait(block); }
};

struct DoneSignal {
  const Flow& flow;
  __device__ void done(int block, int) const {
    Counter(flow.done[block]).fetch_add(1, cuda::memory_order_release);
  }
};

// Brings rows last block first, by bulk copies through shared memory, one thread per block.
__device__ void bring_rows(const Flow& flow, unsigned char* smem, int helper) {
  if (threadIdx.x != 0)
    return;
  auto* barrier = reinterpret_cast<std::uint64_t*>(smem + 64 * 1024);
  ptx::mbarrier_init(barrier, 1);
  ptx::fence_mbarrier_init(ptx::sem_release, ptx::scope_cluster);
  std::uint32_t parity = 0;
  const int rows = flow.row_blocks * kBlockRows;
  for (int i = helper; i < rows; i += flow.helper_blocks, parity ^= 1) {
    const int row = rows - 1 - i;
    if (row / kBlockRows == flow.lost_block)
      continue;
    const std::int64_t offset = std::int64_t{row} * flow.row_bytes;
    ptx::mbarrier_arrive_expect_tx(ptx::sem_release, ptx::scope_cta, ptx::space_shared, barrier,
                                   flow.row_bytes);
    ptx::cp_async_bulk(ptx::space_cluster, ptx::space_global, smem, flow.source + offset,
                       flow.row_bytes, barrier);
    while (!ptx::mbarrier_try_wait_parity(barrier, parity)) {
    }
    ptx::cp_async_bulk(ptx::space_global, ptx::space_shared, flow.a + offset, smem, flow.row_bytes);
    ptx::cp_async_bulk_commit_group();
    ptx::cp_async_bulk_wait_group(ptx::n32_t<0>());
    ptx::fence_proxy_async(ptx::space_global);
    Counter(flow.arrivals[row / kBlockRows]).fetch_add(1, cuda::memory_order_release);
  }
}

// Copies each finished row block of D with generic loads, while other tiles are still running.
__device__ void follow_signals(const Flow& flow, int reader) {
  __shared__ bool go;
  for (int block = reader; block < flow.row_blocks; block += flow.reader_blocks) {
    if (threadIdx.x == 0) {
      go = bounded_wait(flow.done[block], flow.gemm.n_tiles, *flow.aborted, flow.patience_ns);
    }
    __syncthreads();
    if (!go)
      return;
    const std::int64_t bytes = std::int64_t{kBlockRows} * flow.d_row_bytes;
    const auto* from = reinterpret_cast<const uint4*>(flow.d + block * bytes);
    auto* to = reinterpret_cast<uint4*>(flow.d_copy + block * bytes);
    for (std::int64_t i = threadIdx.x; i < bytes / 16; i += blockDim.x)
      to[i] = __ldcg(from + i);
    __syncthreads();
  }
}

template <int Index, bool Ahead>
__global__ void __launch_bounds__(gemm_threads(kGemmVariants[Index]), 1)
    flow_kernel(const __grid_constant__ Flow flow) {
  extern __shared__ __align__(1024) unsigned char dynamic_smem[];
  const int block = static_cast<int>(blockIdx.x);
  if (block < flow.compute_blocks) {
    ArrivalGate ahead{flow};
    PlainGate plain{ahead};
    DoneSignal signal{flow};
    NoProbe probe;
    if constexpr (Ahead) {
      grouped_gemm<kGemmVariants[Index]>(flow.gemm, dynamic_smem, ahead, signal, probe, block,
                                         flow.compute_blocks);
    } else {
      grouped_gemm<kGemmVariants[Index]>(flow.gemm, dynamic_smem, plain, signal, probe, block,
                                         flow.compute_blocks);
    }
    // Reuse the ring's memory, as a block does that joins another role.
    for (int i = threadIdx.x; i < reusable_bytes(kGemmVariants[Index]); i += blockDim.x) {
      dynamic_smem[i] = 0xAB;
    }
  } else if (block < flow.compute_blocks + flow.helper_blocks) {
    bring_rows(flow, dynamic_smem, block - flow.compute_blocks);
  } else {
    follow_signals(flow, block - flow.compute_blocks - flow.helper_blocks);
  }
}

template <int Index>
class FlowRun {
 public:
  static constexpr GemmVariant kVariant = kGemmVariants[Index];
  static constexpr int kReaders = 4;

  explicit FlowRun(const Shape& shape)
      : fixture(shape, kVariant, 0),
        arrived(fixture.capacity() * shape.k),
        d_copy(fixture.capacity() * fixture.d_cols()),
        arrivals(shape.row_blocks()),
        done(shape.row_blocks()),
        aborted(1) {}

  template <bool Ahead>
  void run(int compute, int helpers, int lost_block, unsigned long long patience_ms,
           bool counter = false) {
    arrived.fill_bytes(0xFF);
    d_copy.fill_bytes(0xFF);
    fixture.d.fill_bytes(0xFF);
    arrivals.fill_bytes(0);
    done.fill_bytes(0);
    aborted.fill_bytes(0);
    fixture.next_tile.fill_bytes(0);  // the launch before may have been aborted
    const Shape& shape = fixture.shape();
    Flow flow{};
    flow.gemm = fixture.args_reading(arrived.get());
    flow.gemm.next_tile = counter ? fixture.next_tile.get() : nullptr;
    flow.source = reinterpret_cast<const unsigned char*>(fixture.a.get());
    flow.a = reinterpret_cast<unsigned char*>(arrived.get());
    flow.d = reinterpret_cast<const unsigned char*>(fixture.d.get());
    flow.d_copy = reinterpret_cast<unsigned char*>(d_copy.get());
    flow.arrivals = arrivals.get();
    flow.done = done.get();
    flow.aborted = aborted.get();
    flow.patience_ns = patience_ms * 1000000;
    flow.row_bytes = static_cast<int>(shape.k * 2);
    flow.d_row_bytes = static_cast<int>(fixture.d_cols() * 2);
    flow.row_blocks = shape.row_blocks();
    flow.lost_block = lost_block;
    flow.compute_blocks = compute;
    flow.helper_blocks = helpers;
    flow.reader_blocks = kReaders;
    n_tiles = flow.gemm.n_tiles;
    constexpr int kBytes = shared_bytes(kVariant);
    ASSERT_CUDA(cudaFuncSetAttribute(flow_kernel<Index, Ahead>,
                                     cudaFuncAttributeMaxDynamicSharedMemorySize, kBytes));
    flow_kernel<Index, Ahead>
        <<<compute + helpers + kReaders, gemm_threads(kVariant), kBytes>>>(flow);
    ASSERT_CUDA(cudaDeviceSynchronize());
  }

  Fixture fixture;
  DeviceBuffer<__nv_bfloat16> arrived;
  DeviceBuffer<std::uint16_t> d_copy;
  DeviceBuffer<std::uint32_t> arrivals;
  DeviceBuffer<std::uint32_t> done;
  DeviceBuffer<std::uint32_t> aborted;
  int n_tiles = 0;
};

constexpr unsigned long long kPatienceMs = 4000;

template <class Index>
class GatedGemm : public ::testing::Test {};
template <int I>
using Index = std::integral_constant<int, I>;
using Indices =
    ::testing::Types<Index<variant_index({256, 64, 4, Epilogue::kStore})>,
                     Index<variant_index({128, 64, 6, Epilogue::kSiluMul})>,
                     Index<variant_index({.deferred = true})>,
                     Index<variant_index(gathering({256, 64, 4, Epilogue::kStore}))>,
                     Index<variant_index(gathering({128, 64, 6, Epilogue::kSiluMul}))>,
                     Index<variant_index(transposed({256, 64, 4, Epilogue::kSiluMul}))>,
                     Index<variant_index(transposed({128, 64, 4, Epilogue::kStore}))>,
                     Index<variant_index(transposed({128, 64, 4, Epilogue::kSiluMul}))>,
                     Index<variant_index(gathering(transposed({256, 64, 4, Epilogue::kSiluMul})))>,
                     Index<kFirstMmaVariant>, Index<kFirstMmaVariant + 3>>;
TYPED_TEST_SUITE(GatedGemm, Indices);

template <int Index, bool Ahead>
void check_flow(int compute, int helpers, const std::vector<int>& last_rows = {},
                bool counter = false) {
  FlowRun<Index> flow({{2, 0, 3, 1, 5}, 1536, 1024, last_rows});
  flow.template run<Ahead>(compute, helpers, -1, kPatienceMs, counter);
  EXPECT_EQ(flow.aborted.download()[0], 0u);
  EXPECT_LE(flow.fixture.relative_error(), kTolerance);
  EXPECT_EQ(flow.d_copy.download(), flow.fixture.output()) << "a signal came before its rows";
  for (const std::uint32_t count : flow.done.download()) {
    EXPECT_EQ(count, static_cast<std::uint32_t>(flow.n_tiles));
  }
}

TYPED_TEST(GatedGemm, RowsThatArriveLateAndSignalsThatAreFollowed) {
  if (no_device())
    GTEST_SKIP() << "no CUDA device";
  check_flow<TypeParam::value, true>(sm_count() - 20, 16);
  check_flow<TypeParam::value, false>(sm_count() - 20, 16);
  check_flow<TypeParam::value, true>(6, 8);
  check_flow<TypeParam::value, false>(2, 8);
}

TYPED_TEST(GatedGemm, HalfEmptyRowBlocksAreSignalledToo) {
  if (no_device())
    GTEST_SKIP() << "no CUDA device";
  const std::vector<int> last_rows = {64, 0, 1, 30, 65};
  check_flow<TypeParam::value, true>(sm_count() - 20, 16, last_rows);
  check_flow<TypeParam::value, true>(sm_count() - 20, 16, last_rows, true);
  check_flow<TypeParam::value, false>(3, 8, last_rows, true);
}

TYPED_TEST(GatedGemm, GateThatNeverOpensEndsTheLaunchAndTheNextOneIsRight) {
  if (no_device())
    GTEST_SKIP() << "no CUDA device";
  FlowRun<TypeParam::value> flow({{2, 0, 3, 1, 5}, 1536, 1024});
  flow.template run<true>(sm_count() - 20, 16, 4, 50, true);
  EXPECT_EQ(flow.aborted.download()[0], 1u);
  EXPECT_EQ(flow.done.download()[4], 0u);
  flow.template run<false>(8, 16, 0, 50);
  EXPECT_EQ(flow.aborted.download()[0], 1u);
  EXPECT_EQ(flow.done.download()[0], 0u);
  flow.template run<true>(sm_count() - 20, 16, -1, kPatienceMs, true);
  EXPECT_EQ(flow.aborted.download()[0], 0u);
  EXPECT_LE(flow.fixture.relative_error(), kTolerance);
}

}  // namespace
}  // namespace fusescope::kernels::testing
