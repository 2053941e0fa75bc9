#pragma once
// Records of one iteration (record.hpp) -> a timeline: tracks, events, the wall.
//
// Lanes of a block (Track::lane), since its warps work side by side:
//
//   kernel 1, communication role   one per token slot: pull, scatter, arrive
//   compute role, lane 0           gate_wait, mainloop; epilogue too where it does not overlap the next tile
//                 lane 1           epilogue, where tiles are stored under the next tile's mainloop
//   kernel 2, lane 2 + 4g          warpgroup g's front: claim, ready_wait
//             lane 2 + 4g + 1      its sums
//             lane 2 + 4g + 2, 3   its pushes, in turns: push, elect, watermark
//   block per job, lane 0          ready_wait, sum, push, elect, watermark
//   kernel 1 without communication blocks: the slots of compute blocks are lanes 2 and up; behind them, the one that
//                                          fetches beside the tiles
//   final reduce                   reduce_wait, reduce
//
// Four things are not copied from the records as they stand. A gate's wait begins when the block has no
// tile left to compute: its producer asks for rows long before they are needed. A mainloop begins when the
// gate is open and the tile before is done, so that the fill of its first stage is its own. A block of the
// final reduce waits for all senders at once: the wait is cut where one after the other is seen. A sum begins
// when its row blocks are ready and the sum before has ended, so that the fetch of its first rows is its own,
// unless it waited longest for a row buffer: then it begins when there is one.

#include <cstdint>
#include <span>
#include <string>

#include "timeline/collect/clock_alignment.hpp"
#include "timeline/records/record.hpp"
#include "timeline/records/record_layout.hpp"
#include "timeline/timeline.hpp"

namespace fusescope::timeline {

inline constexpr int kTileLane = 0;
inline constexpr int kEpilogueLane = 1;
inline constexpr int kFirstFreeLane = 2;
inline constexpr int kPushLanes = 2;  // as many pushes of a warpgroup overlap
inline constexpr int kLanesPerJobGroup = 2 + kPushLanes;

// One rank's buffers, read back after the iteration.
struct RankRecords {
  int rank = 0;
  int device = 0;  // as CUDA counts
  RecordLayout layout;
  std::span<const Record> records;          // [layout.records]
  std::span<const std::uint32_t> dropped;   // [layout.writers]
  std::span<const PhaseStamp> phases;       // [kPhases]
  std::span<const std::int32_t> job_order;  // [R*T]; empty: by token id
  bool fetches_first = false;               // kernel 1's slots are those of its compute blocks
  bool tokens_pushed = false;  // kernel 1 finds the tokens of all ranks in this rank's memory
  bool block_per_job = false;
  ClockLine clock;
};

struct DecodeReport {
  std::uint64_t records = 0;
  std::uint64_t dropped = 0;     // by full buffers
  std::uint64_t incomplete = 0;  // records without the one that they belong to
  std::string first_incomplete;  // where, in words
  std::int64_t origin_ns = 0;    // what was subtracted: the wall's begin on the reference clock
};

// Replaces the tracks, events and wall of `timeline`, whose wiring must be set, and sets meta.dropped to
// what is missing of either kind. Never throws on what the records hold; throws std::invalid_argument when
// a buffer is not of its layout's size. check() says whether the outcome is sound.
DecodeReport decode_records(std::span<const RankRecords> ranks, Timeline& timeline);

}  // namespace fusescope::timeline
