#pragma once
// The host's side of a device's start line. Before a timed iteration the device's stream is held until
// the launch thread has enqueued everything that is timed; then all ranks meet, and the timed part
// begins. Without the hold the walls would contain host time: a graph launch takes tens of microseconds
// of host time, longer than the ranks need to meet, and its length varies from sample to sample. Holding
// for a fixed time instead is either too short for some samples or wasted in all of them.
//
// With several devices each launch thread releases its own. The ranks meet after their device's release,
// so that no rank's iteration begins before every device's is enqueued.

#include <cstdint>

#include "kernels/cuda_check.hpp"
#include "kernels/device_barrier.hpp"

namespace fusescope::engine::cuda {

class StartLine {
 public:
  // A stream takes some hundreds of launches before a launch waits for the ones before it, which on a held
  // stream would be until the hold gives up. An iteration of one rank is 30 to 80 launches: with more
  // ranks on the device than this, release before enqueueing. Ranks that share a device go phase by
  // phase, and their wall is no layer's in any case.
  static constexpr int kMostRanksHeld = 2;

  StartLine();  // allocates page-locked memory. Throws CudaError.

  // Enqueues the hold. `guard`: of any rank on the device.
  void hold(const kernels::Guard& guard, cudaStream_t stream) const;
  // Ends the hold that was enqueued last, or lets it pass if it has not begun. Says on stderr, once, if
  // the hold before had ended unreleased: then the walls contain host time. Holds are enqueued on an
  // idle stream, one at a time.
  void release();

 private:
  kernels::HostBlock block_;
  kernels::HoldWords* words_;
  std::uint64_t next_ = 1;  // the hold that is released next
  bool told_ = false;
};

}  // namespace fusescope::engine::cuda
