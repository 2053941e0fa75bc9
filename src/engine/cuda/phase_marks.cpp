#include "engine/cuda/phase_marks.hpp"

namespace fusescope::engine::cuda {

void PhaseMarks::begin(cudaStream_t stream) {
  kinds_.clear();
  events_.clear();
  record(stream);
}

void PhaseMarks::mark(timeline::Kind kind, cudaStream_t stream) {
  kinds_.push_back(kind);
  record(stream);
}

void PhaseMarks::record(cudaStream_t stream) {
  events_.push_back(kernels::make_event());
  cudaStreamCaptureStatus status{};
  FUSESCOPE_CUDA(cudaStreamIsCapturing(stream, &status));
  // Inside a capture, an event that the host reads must be recorded as external.
  const unsigned flags =
      status == cudaStreamCaptureStatusActive ? cudaEventRecordExternal : cudaEventRecordDefault;
  FUSESCOPE_CUDA(cudaEventRecordWithFlags(events_.back().get(), stream, flags));
}

std::vector<PhaseTime> PhaseMarks::read() const {
  std::vector<PhaseTime> phases;
  for (std::size_t i = 0; i < kinds_.size(); ++i) {
    float ms = 0;
    FUSESCOPE_CUDA(cudaEventElapsedTime(&ms, events_[i].get(), events_[i + 1].get()));
    phases.push_back({kinds_[i], 1e3 * static_cast<double>(ms)});
  }
  return phases;
}

}  // namespace fusescope::engine::cuda
