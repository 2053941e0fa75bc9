#pragma once
// What a kernel writes down while it runs, and where: the contract between the device code that
// records and decode_records.hpp, which makes events of it. Plain data: kernels include this header,
// and take a RecordBuffers by value.
//
// A record is one moment of one writer. Every writer is one thread with a piece of the buffer of its
// own, so that recording is one 16-byte store: no atomic, no read. A writer whose piece is full
// writes no more and counts what it drops. Before an iteration is recorded the buffer is zeroed
// (Point::none), the counts of dropped records too, and the stamps are set to PhaseStamp{}.
//
// The writers of a family are numbered block by block; see Family for who is who.

#include <cstdint>

namespace fusescope::timeline {

// [what] names the arguments a, b of the record. All times are %globaltimer, read at the moment that
// is described: for the end of something after its last access, for the begin before the first.
enum class Point : std::uint8_t {
  none,  // not written

  // Kernel 1, a token slot of the communication role.
  pull_issued,  // [token] before the bulk load is issued; injected delays come after it
  pull_landed,  // [token] the row is in shared memory
  scattered,    // [token] all K writes are complete; dispatch gather: its one write, if any
  counted,      // [token] all K arrivals are counted

  // A compute block of either kernel. b is the n tile.
  gate_begin,      // [row block] producer: before the first poll
  gate_end,        // [row block] producer: open
  mainloop_begin,  // [row block] consumer: the tile's first stage is full
  mainloop_end,    // [row block] consumer: the accumulators are final
  epilogue_end,    // [row block] consumer: the last chunk is staged in shared memory
  stored,          // [row block] storer: the tile is in global memory; kernel 2: counter raised

  // Kernel 2, a warpgroup that runs jobs: the front's writer, the summing warps', the pusher's.
  claim_begin,       // before the dispenser is asked
  claimed,           // [position in job order] what it said; not below R*T: no jobs are left
  ready_wait_begin,  // [token] before the first poll of its row blocks
  ready,             // [token] all K row blocks are complete
  fetched,           // [token] the first piece of its rows is there; not in gemm_reduce_scatter
  sum_begin,         // [token] there is a buffer for the sum, too
  summed,            // [token] the row is in shared memory, this thread's part of it
  push_issued,       // [token] before the bulk store is issued
  pushed,            // [token] complete at the receiver
  push_counted,      // [token]
  watermark_begin,   // [receiving rank, chunk] elected; before it is raised
  watermark_raised,  // [receiving rank, chunk]

  // Final reduce. b is the chunk.
  watermark_wait_begin,  // [sending rank]
  watermark_seen,        // [sending rank]
  reduce_begin,          // the block's first row of the chunk
  reduce_end,            // its last row of the chunk is written
};
inline constexpr int kPoints = static_cast<int>(Point::reduce_end) + 1;

struct alignas(16) Record {
  std::uint64_t ns = 0;  // %globaltimer of the device
  std::int32_t a = -1;
  std::uint16_t b = 0;
  Point point = Point::none;
  std::uint8_t unused = 0;
};
static_assert(sizeof(Record) == 16);

// Writers of one kind. `block` counts from 0 within the family.
enum class Family : std::uint8_t {
  dispatch_tiles,  // kernel 1's compute blocks; writers: TileWriter
  dispatch_slots,  // kernel 1's blocks that fetch tokens; one writer per token slot
  combine_tiles,   // kernel 2's compute blocks; writers: TileWriter
  combine_jobs,    // kernel 2's blocks that run nothing but jobs (block per job: one per job);
                   // writers: kJobWriters per warpgroup
  combine_joined,  // kernel 2's compute blocks, once they have joined the jobs; as combine_jobs
  reduce,          // final reduce; one writer per sending rank, the first also for the block
};
inline constexpr int kFamilies = static_cast<int>(Family::reduce) + 1;

enum TileWriter : std::uint32_t { kProducer, kConsumer, kStorer0, kStorer1, kTileWriters };
enum JobWriter : std::uint32_t { kFront, kSummer, kPusher, kJobWriters };

// Begin and end of a kernel or a group of kernels: the smallest begin and the largest end over its
// blocks, by atomicMin and atomicMax. A begin that nothing stamps is the end of the phase before.
struct PhaseStamp {
  std::uint64_t begin_ns = UINT64_MAX;
  std::uint64_t end_ns = 0;
};

// The stream phases in their order; a phase that a layer does not have stays unstamped. Where one kernel
// does several, they may overlap: on the stream, each begins when the one before it has ended.
enum class Phase : std::uint8_t {
  ids_exchange,
  schedule_build,  // begin: not stamped where its first kernels are a library's; end: counters seeded
  entry_barrier,
  copy_in,  // in the prologue: until the tokens of all ranks are there
  copied_barrier,
  dispatch_gemm,
  activation,
  gemm_combine_push,
  final_reduce,
};
inline constexpr int kPhases = static_cast<int>(Phase::final_reduce) + 1;

// Where the writers of a family have their pieces.
struct FamilyLayout {
  std::uint64_t first_record = 0;
  std::uint32_t first_writer = 0;       // in the array of dropped counts
  std::uint32_t blocks = 0;             // 0 = nothing of this family is recorded
  std::uint32_t writers_per_block = 0;  // combine_*: kJobWriters per warpgroup
  std::uint32_t capacity = 0;           // records per writer
};

// One rank's. Passed to kernels by value; a null `records` records nothing.
struct RecordBuffers {
  Record* records = nullptr;
  std::uint32_t* dropped = nullptr;  // per writer
  PhaseStamp* phases = nullptr;      // [kPhases]
  FamilyLayout families[kFamilies];
};

}  // namespace fusescope::timeline
