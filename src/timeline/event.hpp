#pragma once
// One event model for all sources: the simulator, in-kernel records, CUPTI, imported traces.
// This header is the contract between those who record and those who analyse.

#include <cstdint>
#include <string>
#include <string_view>

namespace fusescope::timeline {

// What a track belongs to.
enum class Stage : std::uint8_t {
  stream,             // the rank's stream: phases in order, one slice each
  dispatch_gemm,      // blocks of kernel 1 (serial layer: its GEMM 1)
  gemm_combine_push,  // blocks of kernel 2 (serial layer: its GEMM 2)
  final_reduce,       // blocks of the final reduce
};

inline constexpr int kStages = static_cast<int>(Stage::final_reduce) + 1;

enum class Role : std::uint8_t { stream, compute, communication, reduce };
inline constexpr int kRoles = static_cast<int>(Role::reduce) + 1;

// A row of the timeline. Slices on one track nest or do not overlap; a communication block that has
// several tokens in flight therefore has one lane, that is one track, per token slot. So has a compute block that
// fetches: before its tiles, and with one slot more beside them.
struct Track {
  int rank = 0;
  int device = 0;
  Stage stage = Stage::stream;
  Role role = Role::stream;
  int block = 0;
  int lane = 0;
  bool operator==(const Track&) const = default;
};

// Kinds by stage. [what] names the arguments that are set; the others are -1.
//
// A slice covers the work or the wait from its begin to the moment the track goes on. Waits and
// work alternate on a track without overlap; time between two slices of a track is idle.
enum class Kind : std::uint8_t {
  // Stream phases, in the order of an iteration. They tile the stream; what is between is launch gap. A
  // kernel that begins while the one before it runs (Meta::programmatic) counts from the end of that one.
  ids_exchange,  // ends when every rank's ids are here
  schedule_build,
  barrier,  // [index: 0 entry, 1 after copy-in] begin = entered, end = left
  copy_in,
  dispatch_gemm,  // the kernel, first block's begin to last block's end
  activation,
  dispenser_reset,
  gemm_combine_push,
  final_reduce,
  // Stream phases of the serial layer only.
  all_gather,
  scatter_rows,
  gemm_1,
  gemm_2,
  combine,
  reduce_scatter,

  // Kernel 1, communication lanes.
  pull,  // [token, peer: the rank that has the row: its source, or this one] issue to landed in shared memory
  scatter,  // [token] first store to all K writes complete; dispatch gather: its one write, if any
  arrive,   // [token] counting the K arrivals; end = all counted

  // Compute blocks. Kernel 1 waits at gates for tokens; both kernels compute and store tiles.
  // A tile of several row blocks is named by the first (Wiring::tile_of_row_block).
  gate_wait,        // [row_block, index: n tile] begin = first poll, end = open
  activation_wait,  // [row_block, index: n tile] kernel 2, programmatic: until kernel 1 has the row block
  mainloop,         // [row_block, index: n tile]
  epilogue,         // [row_block, index: n tile] kernel 2: end = done counter raised

  // Kernel 2, any block that runs jobs.
  claim,       // [token, index: position in job order] taking the job from the dispenser
  ready_wait,  // [token, index, row_block: the last to become ready] end = all K row blocks done
  sum,         // [token, index]
  push,        // [token, index, peer: destination rank] issue to copy complete
  elect,       // [token, index, peer] counting the push; end = counted
  watermark,   // [peer: destination rank, index: chunk] raising it; end = visible there

  // Final reduce.
  reduce_wait,  // [peer: sending rank, index: chunk] end = watermark seen
  reduce,       // [index: chunk] summing the planes
};
inline constexpr int kKinds = static_cast<int>(Kind::reduce) + 1;

std::string_view name(Kind kind);
std::string_view name(Stage stage);
std::string_view name(Role role);

// "rank 0 dispatch_gemm communication block 119 lane 3", "rank 0 stream".
std::string describe(const Track& track);

// The arguments that events of a kind carry, as the comments of Kind list them.
struct Arguments {
  bool token = false;
  bool row_block = false;
  bool index = false;
  bool peer = false;
};
Arguments arguments(Kind kind);

inline bool is_stream_phase(Kind kind) {
  return kind <= Kind::reduce_scatter;
}

struct Event {
  std::int64_t begin_ns = 0;  // on the timeline's one clock
  std::int64_t end_ns = 0;
  std::uint32_t track = 0;  // index into Timeline::tracks
  std::int32_t token = -1;  // global id
  std::int32_t row_block = -1;
  std::int32_t index = -1;  // see Kind
  std::int16_t peer = -1;   // see Kind
  Kind kind = Kind::ids_exchange;
  bool operator==(const Event&) const = default;
};

}  // namespace fusescope::timeline
