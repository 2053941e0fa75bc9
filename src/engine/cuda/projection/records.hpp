#pragma once
// In-kernel records of the third kernel, and the timeline that they make. The events are kernel 2's
// (timeline/event.hpp): a push is a job, its first row the job's token, its load the job's sum; hits have
// K = 1. So the layer's analysis reads these timelines as they are.

#include <cstdint>
#include <vector>

#include "engine/cuda/projection/plan.hpp"
#include "engine/cuda/record_memory.hpp"
#include "timeline/records/decode_records.hpp"

namespace fusescope::engine::cuda::projection {

// Where the ranks' kernels write while one iteration runs: per rank, on its device.
class Records {
 public:
  // `plans`: by rank, of the fused form; they get the buffers written in. Throws CudaError when the memory
  // does not suffice, std::length_error when an iteration has too many records to count.
  Records(const Memory& memory, std::vector<Plan>& plans);

  const timeline::RecordLayout& layout(int rank) const { return at(rank).layout; }
  // Before an iteration, on the rank's stream.
  void enqueue_clear(int rank, cudaStream_t stream) const;
  // Of the last iteration, which must have ended. Blocks.
  RankTape read(int rank) const;

 private:
  struct OfRank {
    int device = 0;
    timeline::RecordLayout layout;
    kernels::DeviceBlock records;
    kernels::DeviceBlock dropped;
    kernels::DeviceBlock phases;
    kernels::DeviceBlock unstamped;  // what phases are cleared with
  };
  const OfRank& at(int rank) const { return ranks_[static_cast<std::size_t>(rank)]; }

  std::vector<OfRank> ranks_;
};

// What connects the events of this config's iteration.
timeline::Wiring wiring_of(const Shape& shape, const Config& config);
// The first token of each push, in the order in which a rank's pushes are claimed: [R*T], -1 where there
// are no more pushes.
std::vector<std::int32_t> push_order(const Shape& shape, const Config& config, int rank);

class Runner;

struct RecordedRun {
  timeline::Timeline timeline;
  timeline::DecodeReport report;
};

// Runs the fused `config` without records and with, `iterations` times each, and makes a timeline of the
// last one that was recorded. The runner is then configured for `config`, with records. Whether the
// timeline is sound is timeline::check()'s question. Throws CheckFailure when the outputs change when
// records are written, and what the runner throws.
RecordedRun record_timeline(Runner& runner, const Config& config, int iterations = 5);

}  // namespace fusescope::engine::cuda::projection
