#pragma once
// kernels/counter_gate.cuh: a row block may be read once its counter has reached what opens it. `stopped`: an
// earlier phase was aborted, and no gate opens.

#include "protocol/layer/gemm.hpp"

namespace fusescope::protocol {

// Does not block.
Task is_open(Thread& thread, const GemmCall& call, int row_block, bool stopped, bool& open);
// Not open: given up.
Task wait_open(Thread& thread, const GemmCall& call, int row_block, bool stopped, bool& open);

}  // namespace fusescope::protocol
