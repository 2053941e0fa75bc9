#pragma once
// A consistent timeline made by simple arithmetic, for tests: every rank runs one iteration of the
// fused layer with round durations. No simulator, no tables: small enough to check by hand, and
// scalable.

#include "timeline/timeline.hpp"

namespace fusescope::timeline {

// The default is the tiny layer: 2 ranks, 8 tokens, 3 row blocks.
struct Sketch {
  int ranks = 2;
  int tokens_per_rank = 4;
  int topk = 2;
  int row_blocks = 3;
  int n_tiles_1 = 2;
  int n_tiles_2 = 1;
  int compute_blocks = 2;
  int lanes = 2;        // of the one communication block of kernel 1
  int job_blocks = 1;   // of kernel 2
  bool merged = false;  // an expert's two row blocks are one tile
};

// Row block of hit k of a token: tokens fill the row blocks in id order, the k-th hit k blocks
// further.
int row_block_of(const Sketch& sketch, int token, int k);

Timeline tiny_layer(const Sketch& sketch = {});

// About as many events as the seed's layer has: 4 ranks, 2048 tokens.
Sketch seed_sized();

}  // namespace fusescope::timeline
