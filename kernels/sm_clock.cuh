#pragma once
// Clock of the SM that block 0 runs on, over the kernel: cycles and nanoseconds at both ends. A
// throttled GPU shows here. Nothing is recorded where there is no stamp.

#include <cstdint>

#include "kernels/bounded_wait.cuh"
#include "kernels/layer_args.hpp"

namespace fusescope::kernels {

class SmClock {
 public:
  __device__ explicit SmClock(ClockStamp* stamp) : stamp_(stamp) {
    if (records()) {
      stamp_->begin_cycles = static_cast<std::uint64_t>(clock64());
      stamp_->begin_ns = now_ns();
    }
  }
  __device__ ~SmClock() {
    if (records()) {
      stamp_->end_cycles = static_cast<std::uint64_t>(clock64());
      stamp_->end_ns = now_ns();
    }
  }
  SmClock(const SmClock&) = delete;
  SmClock& operator=(const SmClock&) = delete;

 private:
  __device__ bool records() const {
    return stamp_ != nullptr && blockIdx.x == 0 && threadIdx.x == 0;
  }
  ClockStamp* stamp_;
};

}  // namespace fusescope::kernels
