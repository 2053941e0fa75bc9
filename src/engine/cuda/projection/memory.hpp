#pragma once
// All memory of one projection: per rank the weights, inputs, partial rows, planes, flags and counters on
// its device, and the page-locked words that the device reports to. Allocated once, every array an
// allocation of its own.

#include <cstdint>
#include <vector>

#include "engine/cuda/layer_memory.hpp"
#include "engine/cuda/projection/problem.hpp"

namespace fusescope::engine::cuda::projection {

struct Rank {
  int device = 0;
  std::vector<DeviceArray> arrays;
  std::size_t first_work_array = 0;  // from here on: what every iteration writes before it reads
  kernels::HostBlock host_block;
  kernels::LayerArgs args;           // pointers and sizes; knobs at rest
  kernels::Bf16* x = nullptr;        // [R*T, K/R], by token
  kernels::Bf16* rows = nullptr;     // [row blocks * 128, K/R], the same in slot order
  kernels::Bf16* weights = nullptr;  // [H, K/R]
  HostWords* words = nullptr;
};

class Memory {
 public:
  // Fills weights and inputs with random values from `seed`. `device_of_rank`: one entry per rank. Throws
  // CudaError, e.g. when the memory does not suffice.
  Memory(const Shape& shape, std::vector<int> device_of_rank, std::uint64_t seed,
         std::uint64_t deadline_ns);

  const Shape& shape() const { return shape_; }
  int ranks() const { return shape_.ranks; }
  const Rank& rank(int r) const { return ranks_[static_cast<std::size_t>(r)]; }
  std::size_t input_bytes() const;   // of one rank's x
  std::size_t output_bytes() const;  // of one rank's output

  // Other random inputs, by token, of all ranks; arrange() brings them where the GEMM reads. Blocks.
  void set_input(std::uint64_t seed);
  // What set_input(seed) gives this rank, made on its device, which is the current one.
  void make_input(int r, std::uint64_t seed, kernels::Bf16* to) const;
  // From token order to this rank's slot order. Not part of an iteration: attention, whose output this is,
  // can write its rows in any order.
  void arrange(int r, RowOrder order, const kernels::Bf16* from, kernels::Bf16* to,
               cudaStream_t stream) const;

  // Fills what an iteration must write itself, and the padding rows, with NaN. Blocks.
  void poison();
  // After a launch was aborted: flags, counters and diagnoses as at the start. Blocks.
  void reset_protocol();
  // Of the last launches, which must have ended.
  std::vector<kernels::Diagnosis> diagnoses() const;
  // [T, H] of rank r. Blocks.
  std::vector<kernels::Bf16> read_output(int r) const;

 private:
  void allocate(int r, std::uint64_t deadline_ns);
  void connect();

  Shape shape_;
  std::vector<Rank> ranks_;
};

}  // namespace fusescope::engine::cuda::projection
