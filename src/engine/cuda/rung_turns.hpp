#pragma once
// The counterfactual rungs on GPUs: every study of a config in turns, round after round, so that a clock
// that drifts is in all of them alike.

#include <chrono>
#include <vector>

#include "engine/cuda/layer_runner.hpp"
#include "engine/engine.hpp"

namespace fusescope::engine::cuda {

// The runner has run `config` in full, so that tables and rows are there for studies to run on; it is
// configured for `config` again at the end. The GPUs rest for `rest` before each iteration. Throws InputError
// where why_no_rungs() has a reason, CheckFailure when the full layer's outputs are not what they were, and
// what the runner throws.
std::vector<RungSamples> take_rung_turns(LayerRunner& runner, const Config& config, int rounds,
                                         std::chrono::milliseconds rest);

}  // namespace fusescope::engine::cuda
