#pragma once
// Iterations in a row with no host in between: what all of them read lies ready on the devices, and
// what each of them wrote is kept there, to be looked at afterwards.

#include <cuda_runtime_api.h>

#include <cstdint>
#include <vector>

#include "engine/cuda/layer_memory.hpp"
#include "kernels/cuda_check.hpp"
#include "layer/routing.hpp"

namespace fusescope::engine::cuda {

// What one iteration reads.
struct Feed {
  Routing routing;
  std::uint64_t input_seed = 1;  // as LayerMemory::set_input takes it
};

class StagedRuns {
 public:
  // Iteration i reads feed i % feeds.size(). Every rank's device keeps all feeds and all outputs.
  // Blocks until they are there. `memory` outlives this.
  StagedRuns(const LayerMemory& memory, std::vector<Feed> feeds, int iterations);

  int iterations() const { return iterations_; }
  const Feed& feed(int iteration) const {
    return feeds_[static_cast<std::size_t>(iteration) % feeds_.size()];
  }

  // Before and after iteration i of this rank, on the stream that it runs on.
  void enqueue_feed(int rank, int iteration, cudaStream_t stream) const;
  void enqueue_keep(int rank, int iteration, cudaStream_t stream) const;

  // [T, H] bf16 that the rank's iteration wrote; NaN if it has not run. Blocks.
  std::vector<kernels::Bf16> read_output(int rank, int iteration) const;

 private:
  struct RankStage {
    kernels::DeviceBlock ids;      // [feeds][T, K]
    kernels::DeviceBlock weights;  // [feeds][T, K]
    kernels::DeviceBlock inputs;   // [feeds][T, H]
    kernels::DeviceBlock outputs;  // [iterations][T, H]
  };

  void stage(int rank);

  const LayerMemory& memory_;
  std::vector<Feed> feeds_;
  int iterations_;
  std::size_t hit_bytes_;    // of a rank's ids, and of its weights
  std::size_t plane_bytes_;  // of a rank's input, and of its output
  std::vector<RankStage> ranks_;
};

}  // namespace fusescope::engine::cuda
