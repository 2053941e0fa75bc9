// How fast can N SMs copy rows to slots, or only store them? Rows of 8 KiB, 16384 of them, their sources in the L2,
// each counted when it has been written, as the dispatch does.
//
//   nvcc -std=c++20 -O3 -arch=sm_90a -o store-rate store-rate.cu && ./store-rate
#include <cuda/atomic>
#include <cuda/ptx>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

namespace ptx = cuda::ptx;
using Byte = unsigned char;

#define CHECK(call)                                                                        \
  do {                                                                                     \
    const cudaError_t error_ = (call);                                                     \
    if (error_ != cudaSuccess) {                                                           \
      std::fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, cudaGetErrorString(error_)); \
      std::exit(1);                                                                        \
    }                                                                                      \
  } while (0)

constexpr int kRowBytes = 8192;
constexpr int kTokens = 2048;
constexpr int kRows = 8 * kTokens;
constexpr int kCounterStride = 32;  // words: a counter of 128 rows has a line of its own

struct Copies {
  const Byte* tokens;
  const int* token_of_row;
  Byte* rows;
  unsigned* counters;

  __device__ void count(int row) const {
    cuda::atomic_ref<unsigned, cuda::thread_scope_device>(counters[row / 128 * kCounterStride])
        .fetch_add(1, cuda::memory_order_release);
  }
};

enum class Form {
  kCopy,       // load, wait, store, wait until written, count
  kLoadEarly,  // the next load begins when the store has read its row; counted later
  kStore,      // nothing is loaded
  kStoreRead,  // and nobody waits until it is written
};

// A slot of the block's shared memory has one row under way, and a thread of its own.
template <Form kForm>
__global__ void by_bulk_copies(Copies copies, int slots) {
  constexpr bool kLoads = kForm == Form::kCopy || kForm == Form::kLoadEarly;
  extern __shared__ __align__(128) Byte smem[];
  const int warps = static_cast<int>(blockDim.x) / 32;
  const int slot = static_cast<int>(threadIdx.x) / 32 + static_cast<int>(threadIdx.x) % 32 * warps;
  if (slot >= slots)
    return;
  Byte* room = smem + slot * kRowBytes;
  std::uint64_t& landed = reinterpret_cast<std::uint64_t*>(smem + slots * kRowBytes)[slot];
  ptx::mbarrier_init(&landed, 1);
  ptx::fence_mbarrier_init(ptx::sem_release, ptx::scope_cluster);
  ptx::fence_proxy_async(ptx::space_global);

  const auto count_written = [&](int row) {
    ptx::cp_async_bulk_wait_group(ptx::n32_t<0>());
    ptx::fence_proxy_async(ptx::space_global);
    copies.count(row);
  };
  unsigned parity = 0;
  int before = -1;
  const int step = static_cast<int>(gridDim.x) * slots;
  for (int row = slot * static_cast<int>(gridDim.x) + static_cast<int>(blockIdx.x); row < kRows;
       row += step) {
    if constexpr (kLoads) {
      if (kForm == Form::kLoadEarly)
        ptx::cp_async_bulk_wait_group_read(ptx::n32_t<0>());
      ptx::mbarrier_arrive_expect_tx(ptx::sem_relaxed, ptx::scope_cta, ptx::space_shared, &landed,
                                     kRowBytes);
      ptx::cp_async_bulk(
          ptx::space_cluster, ptx::space_global, room,
          copies.tokens + static_cast<std::int64_t>(copies.token_of_row[row]) * kRowBytes,
          kRowBytes, &landed);
      if (kForm == Form::kLoadEarly && before >= 0)
        count_written(before);
      while (!ptx::mbarrier_try_wait_parity(&landed, parity)) {
      }
      parity ^= 1;
    }
    ptx::cp_async_bulk(ptx::space_global, ptx::space_shared,
                       copies.rows + static_cast<std::int64_t>(row) * kRowBytes, room, kRowBytes);
    ptx::cp_async_bulk_commit_group();
    if (kForm == Form::kCopy || kForm == Form::kStore)
      count_written(row);
    if (kForm == Form::kStoreRead)
      ptx::cp_async_bulk_wait_group_read(ptx::n32_t<0>());
    before = row;
  }
  ptx::cp_async_bulk_wait_group(ptx::n32_t<0>());
}

// A warp a row, 16 bytes a lane and access, `kAhead` loads of a lane under way.
template <int kAhead>
__global__ void __launch_bounds__(1024) by_loads_and_stores(Copies copies) {
  const int warps = static_cast<int>(blockDim.x) / 32;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  for (int row = static_cast<int>(threadIdx.x) / 32 * static_cast<int>(gridDim.x) +
                 static_cast<int>(blockIdx.x);
       row < kRows; row += static_cast<int>(gridDim.x) * warps) {
    const auto* from = reinterpret_cast<const uint4*>(
        copies.tokens + static_cast<std::int64_t>(copies.token_of_row[row]) * kRowBytes);
    auto* to = reinterpret_cast<uint4*>(copies.rows + static_cast<std::int64_t>(row) * kRowBytes);
    for (int first = lane; first < kRowBytes / 16; first += 32 * kAhead) {
      uint4 units[kAhead];
#pragma unroll
      for (int i = 0; i < kAhead; ++i)
        units[i] = __ldcg(from + first + 32 * i);
#pragma unroll
      for (int i = 0; i < kAhead; ++i)
        to[first + 32 * i] = units[i];
    }
    __syncwarp();
    if (lane == 0)
      copies.count(row);
  }
}

template <class Launch>
void time(const std::string& name, int blocks, Launch launch) {
  cudaEvent_t begin, end;
  CHECK(cudaEventCreate(&begin));
  CHECK(cudaEventCreate(&end));
  std::vector<float> ms(9);
  for (float& sample : ms) {
    CHECK(cudaEventRecord(begin));
    launch();
    CHECK(cudaGetLastError());
    CHECK(cudaEventRecord(end));
    CHECK(cudaEventSynchronize(end));
    CHECK(cudaEventElapsedTime(&sample, begin, end));
  }
  std::sort(ms.begin(), ms.end());
  const double gb_s = 1e-6 * kRows * kRowBytes / ms[ms.size() / 2];
  std::printf("%3d SMs  %-36s %7.1f us  %6.0f GB/s stored, %4.1f an SM\n", blocks, name.c_str(),
              1e3 * ms[ms.size() / 2], gb_s, gb_s / blocks);
  CHECK(cudaEventDestroy(begin));
  CHECK(cudaEventDestroy(end));
}

template <Form kForm>
void time_bulk_copies(const std::string& name, const Copies& copies, int blocks, int slots) {
  const int bytes = slots * (kRowBytes + 8);
  CHECK(cudaFuncSetAttribute(by_bulk_copies<kForm>, cudaFuncAttributeMaxDynamicSharedMemorySize,
                             bytes));
  time(name + ", " + std::to_string(slots) + " under way", blocks,
       [&] { by_bulk_copies<kForm><<<blocks, 256, bytes>>>(copies, slots); });
}

int main() {
  std::vector<int> token_of_row(kRows);
  std::vector<unsigned> words(static_cast<std::size_t>(kTokens) * kRowBytes / 4);
  unsigned random = 1;
  const auto next = [&] { return (random = random * 1664525 + 1013904223) >> 8; };
  for (int& token : token_of_row)
    token = static_cast<int>(next() % kTokens);
  for (unsigned& word : words)
    word = next();
  Byte* tokens;
  int* tokens_of_rows;
  Copies copies{};
  CHECK(cudaMalloc(&tokens, words.size() * 4));
  CHECK(cudaMalloc(&tokens_of_rows, kRows * sizeof(int)));
  CHECK(cudaMalloc(&copies.rows, static_cast<std::size_t>(kRows) * kRowBytes));
  CHECK(cudaMalloc(&copies.counters, kRows / 128 * kCounterStride * sizeof(unsigned)));
  CHECK(cudaMemcpy(tokens, words.data(), words.size() * 4, cudaMemcpyHostToDevice));
  CHECK(
      cudaMemcpy(tokens_of_rows, token_of_row.data(), kRows * sizeof(int), cudaMemcpyHostToDevice));
  CHECK(cudaMemset(copies.counters, 0, kRows / 128 * kCounterStride * sizeof(unsigned)));
  copies.tokens = tokens;
  copies.token_of_row = tokens_of_rows;
  for (const int blocks : {1, 8, 16, 32, 132}) {
    for (const int slots : {8, 24}) {
      time_bulk_copies<Form::kCopy>("bulk copies", copies, blocks, slots);
      time_bulk_copies<Form::kLoadEarly>("next load early", copies, blocks, slots);
      time_bulk_copies<Form::kStore>("bulk stores", copies, blocks, slots);
      time_bulk_copies<Form::kStoreRead>("bulk stores, not waited for", copies, blocks, slots);
    }
    for (const int threads : {256, 1024})
      time("loads and stores, " + std::to_string(threads) + " threads", blocks,
           [&] { by_loads_and_stores<8><<<blocks, threads>>>(copies); });
  }
}
