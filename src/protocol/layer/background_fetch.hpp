#pragma once
// kernels/background_fetch.cuh: a block's tokens behind the head of the pull order, one after the other, in steps that
// the GEMM's scheduler takes while it has nothing to find. A row goes in one piece.

#include "protocol/layer/gemm.hpp"

namespace fusescope::protocol {

struct BackgroundFetch {
  enum class Step { next, land, store, count, done };

  // Of a block without such tokens: done.
  BackgroundFetch(Thread& thread, const GemmCall& call);

  const GemmCall& call;
  Step step = Step::done;
  int place = -1;  // in pull order
  int token = -1;
  std::uint32_t parity = 0;
  bool loaded_early = false;  // a planted bug's
};

// By the block's first thread; a barrier of the block orders it before the first step.
void init_background_fetch(Thread& thread, const GemmCall& call);
// Until the producer has asked for the next tile. A landing is not waited for.
Task wait_asked(Thread& thread, BackgroundFetch& fetch, std::uint32_t parity);
// Until nothing is left, or the launch was aborted; no copy is in flight then.
Task finish(Thread& thread, BackgroundFetch& fetch);

}  // namespace fusescope::protocol
