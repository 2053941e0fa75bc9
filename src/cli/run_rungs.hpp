#pragma once
// Counterfactual rungs of a run: from an engine's samples to run.json, and back from there.

#include <optional>
#include <string>

#include "analysis/rungs.hpp"
#include "base/json_reader.hpp"
#include "engine/engine.hpp"

namespace fusescope::cli {

// Of an engine's samples; none where none were taken.
std::optional<analysis::Rungs> rungs_of(const engine::RunRequest& request,
                                        const engine::RunResult& result,
                                        const DeviceLimits& device);

// run.json's "rungs": what the analysis says, and every sample.
Json rungs_document(const analysis::Rungs& rungs, const engine::RunResult& result);

// Of the run whose folder or timeline this is; none where run.json holds none, or there is none. Throws
// InputError for one that is not whole.
std::optional<analysis::Rungs> read_rungs(const std::string& path);

}  // namespace fusescope::cli
