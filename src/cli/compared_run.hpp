#pragma once
// One side of `attribute A --against B`, from a run's or a sweep's folder or from a timeline's file; and
// what a comparison reads like in a terminal.

#include <string>

#include "analysis/compare.hpp"

namespace fusescope::cli {

// A sweep's folder stands for its best config. Samples come from the run.json beside the timeline; a run
// without a timeline gives its walls alone. Throws InputError for a path that is neither, CheckFailure
// for a timeline that breaks the event contract.
analysis::ComparedRun load_compared_run(const std::string& path);

// compare(), once both are the same problem's or `even_unlike`. Throws InputError naming the difference.
analysis::Comparison compare_paths(const std::string& path, const std::string& against,
                                   bool even_unlike);

std::string comparison_text(const analysis::Comparison& comparison);

}  // namespace fusescope::cli
