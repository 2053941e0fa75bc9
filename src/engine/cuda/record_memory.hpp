#pragma once
// Where the ranks' kernels write their records while one iteration runs (timeline/records/record.hpp):
// per rank, on its device. Allocated for one config, because the config says who writes how much.

#include <cstdint>
#include <vector>

#include "engine/cuda/layer_memory.hpp"
#include "engine/cuda/plan.hpp"
#include "timeline/records/record.hpp"
#include "timeline/records/record_layout.hpp"

namespace fusescope::engine::cuda {

// What one rank's full iteration with this plan writes down.
timeline::RecordedWork recorded_work(const TableSizes& sizes, const RankPlan& plan);

// One rank's records of one iteration, on the host.
struct RankTape {
  std::vector<timeline::Record> records;
  std::vector<std::uint32_t> dropped;
  std::vector<timeline::PhaseStamp> phases;
};

class RecordMemory {
 public:
  // `plans`: by rank; they get the buffers written in. `most_per_writer`: records that a writer has
  // room for, at most; 0 = as many as it needs. Throws CudaError when the memory does not suffice.
  RecordMemory(const LayerMemory& memory, std::vector<RankPlan>& plans, int most_per_writer);

  const timeline::RecordLayout& layout(int rank) const { return at(rank).layout; }
  std::size_t bytes() const;  // of all ranks
  // Before an iteration, on the rank's stream.
  void enqueue_clear(int rank, cudaStream_t stream) const;
  // Of the last iteration, which must have ended.
  RankTape read(int rank) const;

 private:
  struct Rank {
    int device = 0;
    timeline::RecordLayout layout;
    kernels::DeviceBlock records;
    kernels::DeviceBlock dropped;
    kernels::DeviceBlock phases;
    kernels::DeviceBlock unstamped;  // what phases are cleared with
  };
  const Rank& at(int rank) const { return ranks_[static_cast<std::size_t>(rank)]; }

  std::vector<Rank> ranks_;
};

}  // namespace fusescope::engine::cuda
