#pragma once
// kernels/counter_gate.cuh: a row block may be read once its counter has reached what opens it. `stopped`: an
// earlier phase was aborted, and no gate opens.

#include "protocol/layer/gemm_schedule.hpp"

namespace fusescope::protocol {

// All gates of a tile. Does not block.
Task are_open(Thread& thread, const GemmCall& call, const TileJob& job, bool stopped, bool& open);
// Not open: given up.
Task wait_open(Thread& thread, const GemmCall& call, const TileJob& job, bool stopped, bool& open);

}  // namespace fusescope::protocol
