#pragma once
// When each phase of a device's iteration ended: events recorded on its stream, inside the graph too.
// A mark costs about a microsecond, so that marked iterations are not the ones that are timed.

#include <vector>

#include "kernels/cuda_check.hpp"
#include "timeline/event.hpp"

namespace fusescope::engine::cuda {

struct PhaseTime {
  timeline::Kind kind;
  double us = 0;  // from the end of the phase before it
};

class PhaseMarks {
 public:
  // The begin of the first phase; forgets earlier marks.
  void begin(cudaStream_t stream);
  // The end of a phase.
  void mark(timeline::Kind kind, cudaStream_t stream);
  // Of the last iteration, which must have ended.
  std::vector<PhaseTime> read() const;

 private:
  void record(cudaStream_t stream);

  std::vector<timeline::Kind> kinds_;
  std::vector<kernels::CudaEvent> events_;
};

}  // namespace fusescope::engine::cuda
