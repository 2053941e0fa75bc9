#pragma once
// Iterations in a row with no host in between: their inputs lie ready on the devices, and what each of
// them wrote is kept there, to be looked at afterwards.

#include <cuda_runtime_api.h>

#include <cstdint>
#include <vector>

#include "engine/cuda/projection/memory.hpp"

namespace fusescope::engine::cuda::projection {

class Staged {
 public:
  // Iteration i reads what Memory::set_input(seeds[i % seeds.size()]) gives, in the slot order of `order`.
  // Every rank's device keeps all inputs and all outputs. Blocks until they are there. `memory` outlives
  // this.
  Staged(const Memory& memory, RowOrder order, std::vector<std::uint64_t> seeds, int iterations);

  int iterations() const { return iterations_; }

  // Before and after iteration i of this rank, on the stream that it runs on.
  void enqueue_input(int rank, int iteration, cudaStream_t stream) const;
  void enqueue_keep(int rank, int iteration, cudaStream_t stream) const;

  // [T, H] that the rank's iteration wrote; NaN if it has not run. Blocks.
  std::vector<kernels::Bf16> read_output(int rank, int iteration) const;

 private:
  struct RankStage {
    kernels::DeviceBlock inputs;   // [seeds][R*T, K/R], in slot order
    kernels::DeviceBlock outputs;  // [iterations][T, H]
  };

  const Memory& memory_;
  std::size_t inputs_;
  int iterations_;
  std::vector<RankStage> ranks_;
};

}  // namespace fusescope::engine::cuda::projection
