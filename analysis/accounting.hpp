#pragma once
// View 1, wait accounting: the area SMs x wall of every rank, split into work, waits and idle, and
// for every gate that was closed, which token it was closed for.

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "timeline/dependencies.hpp"
#include "timeline/timeline.hpp"

namespace fusescope::analysis {

enum class Use : std::uint8_t {
  compute,        // mainloop, epilogue; the serial layer's GEMM phases
  communication,  // pull, scatter, arrive; the serial layer's all-gather, row scatter and
                  // reduce-scatter
  combine,        // claim, sum, push, elect, watermark; the serial layer's combine
  reduce,
  gate_wait,  // for tokens; with kernel 2 beside kernel 1, for activations, too
  ready_wait,
  watermark_wait,
  other_phase,  // stream phases that are not split by block (ids, schedule, barrier, copy-in, ...)
  idle,         // an SM without a block, a block between two slices, or one of kernel 2 that has to
                // wait for kernel 1's last tiles, as in stream order all of them do
};
inline constexpr int kUses = static_cast<int>(Use::idle) + 1;
std::string_view name(Use use);  // "gate wait"

// What the last token to land was doing while a gate was closed.
enum class Blame : std::uint8_t { not_yet_issued, in_flight, landed_not_seen };
inline constexpr int kBlames = 3;
std::string_view name(Blame blame);  // "not yet issued"

// One closed gate: a compute block that polled, and the token whose arrival opened the row block.
struct GateBlame {
  int rank = 0;
  int block = 0;
  int row_block = 0;
  int expert = -1;
  int last_token = -1;                  // -1: its arrival is not on record
  int source_rank = -1;                 // of the last token
  Blame blame = Blame::not_yet_issued;  // at the begin of the wait
  std::int64_t begin_ns = 0;
  std::int64_t wait_ns = 0;
  // The wait split by what the last token was doing; sums to wait_ns. Not yet issued: before its
  // pull began. In flight: from then until its arrival was counted. A gate whose last token is not
  // on record counts as not yet issued, since nothing says otherwise.
  std::array<std::int64_t, kBlames> ns_by_blame{};
  std::int64_t pull_ns = 0;     // of the in-flight part: on the link. Sums with scatter_ns to it.
  std::int64_t scatter_ns = 0;  // of the in-flight part: from landed in shared memory until counted
};

struct RankAccounting {
  int rank = 0;
  std::int64_t area_ns = 0;                  // SMs x wall
  std::array<std::int64_t, kUses> by_use{};  // sums to area_ns exactly
  // The same area by the role of the SM's block (timeline::Role); `stream` is time outside of
  // kernels with block tracks, and SMs without a block. Sums to by_use over the roles.
  std::array<std::array<std::int64_t, kUses>, timeline::kRoles> by_role{};
};

struct Accounting {
  std::vector<RankAccounting> ranks;
  std::vector<GateBlame> gates;  // waits of more than 0 ns, longest first
};

// SM-nanoseconds. While a kernel with block tracks runs, each of its blocks has one SM; short-lived
// blocks are put on the SM that was free longest, and blocks beyond the SM count share one. What
// shares an SM, lanes of a block included, is merged: work wins over waiting, waiting over idle;
// between two kinds of work (or two waits) the one that comes first in Use. Any other phase has all
// SMs; a gap is idle. The kernels of a programmatic timeline overlap, and count as one: a block of the
// later one is put on an SM that a block of the earlier one has left. Events are clipped to their
// kernel's phase and phases to the wall, so that the sum is exact on any timeline, whatever its clocks.
Accounting account(const timeline::Dependencies& dependencies);
Accounting account(const timeline::Timeline& timeline);

// The gates alone, longest wait first.
std::vector<GateBlame> blame_gates(const timeline::Dependencies& dependencies);

}  // namespace fusescope::analysis
