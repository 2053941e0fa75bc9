#pragma once
// Begin and end of kernels as CUPTI reports them, and as the kernels wrote them down themselves.

#include <memory>
#include <string>
#include <vector>

#include "engine/cuda/layer_runner.hpp"
#include "timeline/collect/cupti_activity.hpp"

namespace fusescope::engine::cuda {

struct KernelBoundaries {
  int device = 0;
  std::string kernel;
  double begin_ns =
      0;  // in-kernel minus CUPTI's: what a kernel takes to come to its first look at the clock
  double end_ns = 0;  // the same of the end: negative, what it takes to leave
  double stamp_ns =
      0;  // the same of the end that one thread per block stamps, whoever ends after it
  double bound_ns = 0;  // of the alignment of the two clocks
};

// Of one more recorded iteration, for which the runner must be prepared, with one rank per device.
std::vector<KernelBoundaries> compare_with_cupti(LayerRunner& runner,
                                                 timeline::CuptiActivity& cupti);

}  // namespace fusescope::engine::cuda
