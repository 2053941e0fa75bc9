// What the GEMM tests share: device buffers, padded expert tables, random and poisoned data, and
// the comparison with the reference.
#pragma once

#include <cuda_runtime.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "kernels/gemm/gemm_launch.hpp"
#include "kernels/gemm/gemm_reference.cuh"

namespace fusescope::kernels::testing {

#define ASSERT_CUDA(call) ASSERT_EQ(cudaSuccess, (call)) << cudaGetErrorString(cudaGetLastError())

inline constexpr double kTolerance = 4e-3;  // bf16 output rounding alone is about 2e-3

inline bool no_device() {
  int count = 0;
  const bool none = cudaGetDeviceCount(&count) != cudaSuccess || count == 0;
  static_cast<void>(cudaGetLastError());
  return none;
}

inline int sm_count() {
  int sms = 0;
  cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, 0);
  return sms;
}

template <class T>
class DeviceBuffer {
 public:
  explicit DeviceBuffer(std::size_t count) : count_(count) {
    if (cudaMalloc(&data_, bytes() + 16) != cudaSuccess)
      throw std::bad_alloc();
  }
  ~DeviceBuffer() { cudaFree(data_); }
  DeviceBuffer(const DeviceBuffer&) = delete;
  DeviceBuffer& operator=(const DeviceBuffer&) = delete;

  T* get() const { return data_; }
  std::size_t bytes() const { return count_ * sizeof(T); }
  void fill_bytes(int value) { cudaMemset(data_, value, bytes()); }
  void upload(const std::vector<T>& from) {
    cudaMemcpy(data_, from.data(), bytes(), cudaMemcpyHostToDevice);
  }
  std::vector<T> download() const {
    std::vector<T> to(count_);
    cudaMemcpy(to.data(), data_, bytes(), cudaMemcpyDeviceToHost);
    return to;
  }

 private:
  T* data_ = nullptr;
  std::size_t count_;
};

struct Shape {
  std::vector<int> blocks_per_expert;  // row blocks
  std::int64_t n;
  std::int64_t k;
  std::vector<int> last_rows = {};  // rows that the last row block of each expert holds; empty: all

  int experts() const { return static_cast<int>(blocks_per_expert.size()); }
  int row_blocks() const {
    int sum = 0;
    for (int blocks : blocks_per_expert)
      sum += blocks;
    return sum;
  }
  std::int64_t rows() const { return std::int64_t{row_blocks()} * kBlockRows; }
  // By row block.
  std::vector<std::int32_t> slack() const {
    std::vector<std::int32_t> slack;
    for (std::size_t e = 0; e < blocks_per_expert.size(); ++e) {
      slack.resize(slack.size() + static_cast<std::size_t>(blocks_per_expert[e]), 0);
      if (!last_rows.empty() && blocks_per_expert[e] > 0)
        slack.back() = kBlockRows - last_rows[e];
    }
    return slack;
  }
};

// a[row] = from[row_at[row]], one block a row.
inline __global__ void place_rows(const __nv_bfloat16* from, const std::int32_t* row_at,
                                  std::int64_t k, __nv_bfloat16* a) {
  for (std::int64_t i = threadIdx.x; i < k; i += blockDim.x)
    a[blockIdx.x * k + i] = from[row_at[blockIdx.x] * k + i];
}

// One problem with its buffers. A has `spare` row blocks more than the routing fills. Variants that gather
// find A's rows among fewer others, in no order.
class Fixture {
 public:
  Fixture(Shape shape, GemmVariant variant, int spare = 2)
      : shape_(std::move(shape)),
        variant_(variant),
        capacity_(shape_.rows() + spare * kBlockRows),
        unique_(capacity_ / 5 + 1),
        a(capacity_ * shape_.k),
        unique_rows(unique_ * shape_.k),
        unique_row_at(capacity_),
        own_row_at(capacity_),
        b(shape_.experts() * shape_.n * shape_.k),
        d(capacity_ * d_cols()),
        expert_rows(shape_.experts() + 1),
        slack(shape_.row_blocks()),
        next_tile(1),
        sums_(2) {
    std::vector<std::int32_t> prefix{0};
    for (int blocks : shape_.blocks_per_expert)
      prefix.push_back(prefix.back() + blocks * kBlockRows);
    expert_rows.upload(prefix);
    slack.upload(shape_.slack());
    next_tile.fill_bytes(0);
    static std::uint64_t seed = 1;
    reference::fill_random<<<256, 256>>>(a.get(), capacity_ * shape_.k, seed++, 1.0f);
    reference::fill_random<<<256, 256>>>(unique_rows.get(), unique_ * shape_.k, seed++, 1.0f);
    std::vector<std::int32_t> in_place(capacity_);
    std::vector<std::int32_t> anywhere(capacity_);
    for (std::int64_t row = 0; row < capacity_; ++row) {
      in_place[row] = static_cast<std::int32_t>(row);
      anywhere[row] = static_cast<std::int32_t>((row * 7919 + row / 3) % unique_);
    }
    own_row_at.upload(in_place);
    unique_row_at.upload(anywhere);
    if (variant_.gathers) {
      place_rows<<<static_cast<unsigned>(capacity_), 128>>>(unique_rows.get(), unique_row_at.get(),
                                                            shape_.k, a.get());
    }
    reference::fill_random<<<256, 256>>>(b.get(), shape_.experts() * shape_.n * shape_.k, seed++,
                                         0.125f);
    d.fill_bytes(0xFF);  // NaN
  }

  GroupedGemmArgs args() const {
    return variant_.gathers ? args_reading(unique_rows.get(), unique_row_at.get())
                            : args_reading(a.get());
  }

  // Rows in slot order.
  GroupedGemmArgs args_reading(const void* rows) const {
    return args_reading(rows, own_row_at.get());
  }

  GroupedGemmArgs args_reading(const void* rows, const std::int32_t* row_at) const {
    GroupedGemmDesc desc{capacity_, shape_.n, shape_.k, shape_.experts(),
                         rows,      b.get(),  d.get(),  expert_rows.get()};
    desc.a_rows = row_at;
    if (!shape_.last_rows.empty())
      desc.slack = slack.get();
    return make_grouped_gemm_args(desc, variant_);
  }

  std::int64_t d_cols() const {
    return variant_.epilogue == Epilogue::kSiluMul ? shape_.n / 2 : shape_.n;
  }

  // Relative Frobenius error over all rows that hold something; NaN if any was not written.
  double relative_error() {
    if (shape_.rows() == 0)
      return 0;
    sums_.fill_bytes(0);
    const reference::Problem problem{
        a.get(),  b.get(),  expert_rows.get(), slack.get(),
        shape_.n, shape_.k, shape_.experts(),  variant_.epilogue == Epilogue::kSiluMul};
    reference::compare<<<1024, 128>>>(problem, d.get(), shape_.rows(), 1, sums_.get());
    const std::vector<double> sums = sums_.download();
    return std::sqrt(sums[0] / sums[1]);
  }

  std::vector<std::uint16_t> output() const {
    std::vector<std::uint16_t> bits(d.bytes() / 2);
    cudaMemcpy(bits.data(), d.get(), d.bytes(), cudaMemcpyDeviceToHost);
    return bits;
  }

  // Rows behind the last expert, and empty second halves of row blocks, keep their poison.
  bool spare_rows_untouched() const {
    const std::vector<std::uint16_t> bits = output();
    const std::vector<std::int32_t> empty = shape_.slack();
    for (std::int64_t row = 0; row < capacity_; ++row) {
      const auto block = static_cast<std::size_t>(row / kBlockRows);
      const bool spare = block >= empty.size() ||
                         (empty[block] >= kBlockRows / 2 && row % kBlockRows >= kBlockRows / 2);
      for (std::int64_t i = row * d_cols(); spare && i < (row + 1) * d_cols(); ++i) {
        if (bits[static_cast<std::size_t>(i)] != 0xFFFF)
          return false;
      }
    }
    return true;
  }

  const Shape& shape() const { return shape_; }
  std::int64_t capacity() const { return capacity_; }

 private:
  Shape shape_;
  GemmVariant variant_;
  std::int64_t capacity_;
  std::int64_t unique_;

 public:
  DeviceBuffer<__nv_bfloat16> a;  // in slot order: what the reference reads
  DeviceBuffer<__nv_bfloat16> unique_rows;
  DeviceBuffer<std::int32_t> unique_row_at;
  DeviceBuffer<std::int32_t> own_row_at;
  DeviceBuffer<__nv_bfloat16> b;
  DeviceBuffer<__nv_bfloat16> d;
  DeviceBuffer<std::int32_t> expert_rows;
  DeviceBuffer<std::int32_t> slack;
  DeviceBuffer<std::uint32_t> next_tile;

 private:
  DeviceBuffer<double> sums_;
};

}  // namespace fusescope::kernels::testing
