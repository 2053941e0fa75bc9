#pragma once
// Who waits for whom: the waits of a timeline added up by waiting rank and role, by the rank that
// was waited for, and by what it was doing meanwhile; and the row blocks, experts and source ranks
// that cost most at the gates.

#include <array>
#include <cstdint>
#include <vector>

#include "analysis/accounting.hpp"
#include "timeline/dependencies.hpp"

namespace fusescope::analysis {

// One cell of the table. The wait's kind says what was awaited and so what the three blames mean:
//   gate_wait     the last token's row       not issued: before its pull; in flight: until counted
//   ready_wait    a tile of the own GEMM 2   not issued: before its mainloop; in flight: until stored
//   reduce_wait   a sender's watermark       not issued: before it was raised; in flight: until visible
//   push          a row buffer: a sum       not issued: before the push two jobs before was issued; in
//                 of a warpgroup            flight: until it is complete, or where a sum waits for the
//                                           buffer alone, until that is read; landed: until it is counted
//                                           and its watermark raised. The rank waited for is its receiver
//   barrier, ids_exchange, all_gather, reduce_scatter
//                 the last rank to enter     not issued: before it entered; landed: after
struct WaitEdge {
  int waiting_rank = 0;
  timeline::Role role = timeline::Role::compute;
  timeline::Kind kind = timeline::Kind::gate_wait;
  int source_rank = -1;  // the rank waited for; -1: the cause is not on record
  std::int64_t waits = 0;
  std::int64_t wait_ns = 0;                         // added over tracks, so lanes count each
  std::array<std::int64_t, kBlames> ns_by_blame{};  // sums to wait_ns
};

// A row block, expert or source rank and the gate waits that it caused.
struct WaitTotal {
  int rank = -1;  // the waiting rank; -1: over all ranks
  int id = -1;    // row block, expert or source rank
  std::int64_t waits = 0;
  std::int64_t wait_ns = 0;
  std::array<std::int64_t, kBlames> ns_by_blame{};
};

struct WaitTable {
  std::vector<WaitEdge> edges;          // longest first
  std::vector<WaitTotal> row_blocks;    // per rank; longest first, all of them
  std::vector<WaitTotal> experts;       // over ranks
  std::vector<WaitTotal> source_ranks;  // over ranks
};

WaitTable tabulate_waits(const timeline::Dependencies& dependencies,
                         const std::vector<GateBlame>& gates);

}  // namespace fusescope::analysis
