#pragma once
// kernels/communication.cuh, TokenCopies: one token's way from its source rank to its slots, step by step, for
// whoever takes the steps.

#include "protocol/layer/layer.hpp"

namespace fusescope::protocol {

// At this position of the pull order.
int token_at(const Thread& thread, const Layer& layer, const Round& round, int position);
// It lies where the GEMM gathers it from.
bool is_in_place(const Thread& thread, const Layer& layer, int token);
// The fault.
bool pull_is_lost(const Thread& thread, const Layer& layer, const Round& round, int token);
void start_pull(Thread& thread, const Layer& layer, const Round& round, int token, Span row,
                MbarrierId landed);
// To where the GEMM reads it. Committed.
void start_scatter(Thread& thread, const Layer& layer, const Round& round, int token, Span row);
// `fenced`: releases the row.
Task count_arrivals(Thread& thread, const Layer& layer, const Round& round, int token, bool fenced);

}  // namespace fusescope::protocol
