#pragma once
// View 1, wait accounting: the area SMs x wall of every rank, split into work, waits and idle.

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "timeline/timeline.hpp"

namespace fusescope::analysis {

enum class Use : std::uint8_t {
  compute,        // mainloop, epilogue
  communication,  // pull, scatter, arrive
  combine,        // claim, sum, push, elect, watermark
  reduce,
  gate_wait,
  ready_wait,
  watermark_wait,
  other_phase,    // stream phases that are not split by block (ids, schedule, barrier, copy-in, ...)
  idle,           // an SM without a block, or a block between two slices
};
inline constexpr int kUses = static_cast<int>(Use::idle) + 1;
std::string_view name(Use use);

// Why a gate was closed when the wait began, by the last token to land.
enum class Blame : std::uint8_t { not_yet_issued, in_flight, landed_not_seen };
std::string_view name(Blame blame);

struct GateBlame {
  int rank = 0;
  int block = 0;
  int row_block = 0;
  int expert = 0;
  int last_token = -1;
  int source_rank = -1;
  Blame blame = Blame::not_yet_issued;  // at the begin of the wait
  std::int64_t wait_ns = 0;
  std::array<std::int64_t, 3> ns_by_blame{};  // the wait split by what the last token was doing; sums to wait_ns
};

struct RankAccounting {
  int rank = 0;
  std::int64_t area_ns = 0;                     // SMs x wall
  std::array<std::int64_t, kUses> by_use{};     // sums to area_ns exactly
};

struct Accounting {
  std::vector<RankAccounting> ranks;
  std::vector<GateBlame> gates;  // longest wait first
};

// SM-nanoseconds. Lanes of one block share its SM: work wins over waiting, waiting over idle.
Accounting account(const timeline::Timeline& timeline);

}  // namespace fusescope::analysis
