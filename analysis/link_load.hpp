#pragma once
// Rows on the way between GPUs, by the rank whose link all others share: pulls by the rank that they come
// from (its egress), pushes by the rank that they go to (its ingress).
//
// Ranks that take tokens in the same order are all at the same rank's rows at the same time: a convoy. Its
// link then has to carry what the links of all ranks could, which idle meanwhile; the waits at gates
// name the rank that comes last in the convoy, not the one that made it late. An emulated link (link_gbps) is
// a line for each pair of ranks: nobody shares it, but each rank then uses one of its lines only.

#include <cstdint>
#include <string>
#include <vector>

#include "timeline/dependencies.hpp"

namespace fusescope::analysis {

inline constexpr int kLoadSlices = 96;

struct LinkEnd {
  std::int64_t rows = 0;           // of other ranks' pulls or pushes
  std::int64_t row_ns = 0;         // what they took, added up
  std::int64_t convoy_ns = 0;      // time in which more than half of all rows on the way were these
  std::int64_t convoy_row_ns = 0;  // the part of row_ns in that time
  std::vector<double> load;  // rows on the way, mean over each of kLoadSlices parts of the span
};

struct LinkLoad {
  std::int64_t begin_ns = 0;  // the span: the first row's issue ...
  std::int64_t end_ns = 0;    // ... to the last row's landing
  // By rank. Empty where no link has two users: fewer than three ranks, ranks that share a GPU, the serial
  // layer, or nothing recorded.
  std::vector<LinkEnd> ranks;
  // Rows that spent most of their time in a convoy, and the others.
  std::int64_t convoy_rows = 0, other_rows = 0;
  double convoy_mean_ns = 0, other_mean_ns = 0;
  // The rank whose link, or the lines to which, hold the others up; -1: none does.
  int bottleneck = -1;
  std::string statement;  // in a sentence, without its full stop
};

// `kind`: pull or push.
LinkLoad link_load(const timeline::Dependencies& dependencies, timeline::Kind kind);

}  // namespace fusescope::analysis
