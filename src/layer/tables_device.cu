// The vectorised tables on a CUDA stream. The scratch of Thrust and CUB is carved from the end of the
// workspace, so that nothing is allocated while a graph is captured.
#include <cuda_runtime.h>
#include <thrust/system/cuda/execution_policy.h>
#include <cub/device/device_radix_sort.cuh>

#include <algorithm>
#include <bit>
#include <new>
#include <stdexcept>
#include <string>

#include "layer/tables_device.hpp"
#include "layer/tables_thrust.hpp"

namespace fusescope {
namespace {

// What Thrust's allocator interface asks for, over one range of device memory. Steps run one after
// the other on one stream, so a range that was given back may be given out again at once.
class ScratchAllocator {
 public:
  using value_type = char;

  ScratchAllocator(char* begin, std::size_t bytes) : begin_(begin), bytes_(bytes) {}

  char* allocate(std::ptrdiff_t count) {
    const std::size_t wanted = (static_cast<std::size_t>(count) + tables_thrust::kAlignment - 1) /
                               tables_thrust::kAlignment * tables_thrust::kAlignment;
    if (wanted > bytes_ - used_) {
      throw std::bad_alloc();
    }
    char* const given = begin_ + used_;
    used_ += wanted;
    ++live_;
    return given;
  }
  void deallocate(char*, std::size_t) {
    if (--live_ == 0) {
      used_ = 0;
    }
  }

 private:
  char* begin_;
  std::size_t bytes_;
  std::size_t used_ = 0;
  int live_ = 0;
};

void check(cudaError_t error) {
  if (error != cudaSuccess) {
    throw std::runtime_error(std::string("building the schedule tables: ") +
                             cudaGetErrorString(error));
  }
}

// CUB's own sort, because it can be told how many bits a key has: with up to 256 experts one pass, where
// Thrust's would make a pass for each byte of the type.
class SortByExpert {
 public:
  SortByExpert(cudaStream_t stream, ScratchAllocator& scratch)
      : stream_(stream), scratch_(scratch) {}

  void operator()(tables_thrust::Arrays& a) const {
    const std::int32_t hits = a.sizes.hits();
    const auto last = static_cast<std::uint32_t>(a.sizes.experts - 1);
    const int bits = std::max(1, static_cast<int>(std::bit_width(last)));
    cub::DoubleBuffer<std::uint32_t> keys(a.key, take<std::uint32_t>(hits));
    cub::DoubleBuffer<std::int32_t> values(a.sorted, take<std::int32_t>(hits));
    std::size_t bytes = 0;
    check(cub::DeviceRadixSort::SortPairs(nullptr, bytes, keys, values, hits, 0, bits, stream_));
    void* const work = take<char>(bytes);
    check(cub::DeviceRadixSort::SortPairs(work, bytes, keys, values, hits, 0, bits, stream_));
    a.key = keys.Current();
    a.sorted = values.Current();
  }

 private:
  // Not given back: the sorted arrays are read until the build ends.
  template <typename T>
  T* take(std::size_t count) const {
    return reinterpret_cast<T*>(scratch_.allocate(static_cast<std::ptrdiff_t>(count * sizeof(T))));
  }

  cudaStream_t stream_;
  ScratchAllocator& scratch_;
};

// The radix sort's second pair of buffers, the scans' tile states and their alignment, with room.
std::size_t scratch_bytes(const TableSizes& sizes) {
  constexpr std::size_t kFixed = std::size_t{1} << 20;
  return kFixed + static_cast<std::size_t>(sizes.hits()) * 8 +
         static_cast<std::size_t>(sizes.max_rows());
}

std::size_t array_bytes(const TableSizes& sizes) {
  tables_thrust::Arrays arrays{
      sizes, SlotOrder::by_token, 0, nullptr, {}, nullptr, nullptr, nullptr, nullptr};
  return tables_thrust::carve(arrays, nullptr);
}

}  // namespace

std::size_t table_workspace_bytes(const TableSizes& sizes) {
  return array_bytes(sizes) + scratch_bytes(sizes);
}

void build_tables_on_stream(CUstream_st* stream, const TableSizes& sizes,
                            const std::int32_t* experts, SlotOrder slot_order, int rank,
                            const TablePointers& out, void* workspace) {
  ScratchAllocator scratch(static_cast<char*>(workspace) + array_bytes(sizes),
                           scratch_bytes(sizes));
  tables_thrust::build(thrust::cuda::par_nosync(scratch).on(stream), sizes, experts, slot_order,
                       rank, out, workspace, SortByExpert(stream, scratch));
  check(cudaGetLastError());
}

}  // namespace fusescope
