#pragma once
// A sweep's results for other programs: CSV, and T4, the results format of the autotuning community
// (Kernel Tuner, KTT and others write it; schema: kernel_tuner/schema/T4/1.0.0 in
// github.com/KernelTuner/kernel_tuner, from github.com/odgaard/TuningSchema).

#include <string>
#include <vector>

#include "base/json_reader.hpp"
#include "sweep/trial_log.hpp"

namespace fusescope::sweep {

// `results`: latest() of a log. One row per result, a column per knob and per step; RFC 4180.
// median_us is normalised and counts; raw_median_us is as measured; rank_us the median of each rank,
// separated by blanks.
std::string to_csv(const std::vector<Trial>& results);

// Results of the search as a T4 results document, times in ms. A simulated wall is named
// simulated_wall_us.
Json to_t4(const std::vector<Trial>& results);
// The document that goes with it: where the results come from.
Json to_t4_metadata(const LogHeader& header);

}  // namespace fusescope::sweep
