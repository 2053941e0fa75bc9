#pragma once
// Rungs of the same layer at several values of one knob, side by side: what each value costs in SM tax,
// contention and waiting, and where a GEMM's tiles need one more wave.

#include <string>
#include <vector>

#include "analysis/rungs.hpp"

namespace fusescope::analysis {

struct RungSeries {
  std::string knob;
  std::vector<std::string> values;  // as users write them, in the order they were asked for
  std::vector<Rungs> rungs;         // one per value
};

// Where the count of waves of a kernel changes from one value to the next, and what the SM tax does there.
// "dispatch_gemm: from dispatch_comm_sms 4 to 8 its 768 tiles go from 6 waves on 128 SMs to 7 on 124: the SM tax
// goes from +0.0 to +41.0 us." Kernels whose split the knob does not change are left out.
std::vector<std::string> wave_steps(const RungSeries& series);

// As `run --across` prints it: a column per value.
std::string series_text(const RungSeries& series);

}  // namespace fusescope::analysis
