#pragma once
// What every kernel of one rank's layer needs: sizes, the rank's buffers, what it may touch of the
// other ranks' memory, and the guard of its waits. One aggregate, passed by value as part of each
// kernel's __grid_constant__ parameter.
//
// Why no buffer is reused too early. Call an iteration n; `iteration` holds n from the seeding of the
// counters in n to the same point in n + 1. A rank begins n + 1 when its own iteration n has ended,
// that is, after its final reduce has seen every rank's watermark n. All flags hold n, or a multiple
// of it, and only grow, so a flag left over from n never passes for one of n + 1.
//
//   ids, stamped_ids,       row d is written by d's source rank s. Readers: this rank's schedule
//   weights [R*T, K]        build, and this rank's job of token d. s writes again in n + 1, after it
//                           has seen this rank's watermark n, which is raised when this rank has
//                           pushed all jobs of s's tokens: both readers are done with s's rows.
//   shared_tokens [T, H]    written by copy-in, read by every rank's kernel 1. Between the reads of n
//                           and the write of n + 1 lies the entry barrier of n + 1, at which a rank
//                           arrives after its kernel 1 of n. The prologue has no such barrier, and its
//                           copy-in waits for nothing: it comes after this rank's final reduce of n,
//                           which has seen the watermarks that all ranks raise in their kernel 2 of n
//                           (serial layer: after a reduce-scatter that all ranks' rows went into).
//   all_tokens [R*T, H]     with dispatch push, rows of rank p are written by its copy-in, and read by this
//                           rank's kernel 1: as the shared tokens of p, in another place.
//   staging [R, T, H]       plane p is written by rank p's kernel 2, read by this rank's final reduce.
//                           Rank p's kernel 2 of n + 1 comes after the entry barrier of n + 1, at
//                           which this rank arrives after its final reduce of n; with the prologue,
//                           after this rank's copy-in of n + 1, which comes after that final reduce.
//   everything else         is touched by this rank alone, in stream order.
//
// Row data is bf16, carried here as 16-bit words: host code needs no CUDA header for it.

#include <cstdint>

#include "kernels/guard.hpp"
#include "timeline/records/record.hpp"

namespace fusescope::kernels {

using Bf16 = std::uint16_t;

inline constexpr int kMaxWatermarkChunks = 64;

// Flags of one rank, each written by one rank only: `[r]` by rank r.
struct Flags {
  std::uint64_t ids[kMaxRanks];
  std::uint64_t barrier[kMaxRanks];
  std::uint64_t start[kMaxRanks];
  std::uint64_t watermark[kMaxRanks][kMaxWatermarkChunks];
};

// What the prologue sends: an id with the iteration that it belongs to, in one word. Whoever sees the iteration
// has the id, so that no flag has to follow.
inline constexpr int kStampedIdBits = 16;
inline constexpr std::uint32_t kMostStampedId =
    (1U << kStampedIdBits) - 1;  // for all above it, too
constexpr std::uint64_t stamp_id(std::int32_t id, std::uint64_t iteration) {
  const auto value = static_cast<std::uint32_t>(id);
  return iteration << kStampedIdBits | (value < kMostStampedId ? value : kMostStampedId);
}
constexpr std::uint64_t iteration_of(std::uint64_t stamped) {
  return stamped >> kStampedIdBits;
}
constexpr std::uint32_t id_of(std::uint64_t stamped) {
  return static_cast<std::uint32_t>(stamped) & kMostStampedId;
}

// A rank's memory as its peers see it.
struct Shared {
  std::int32_t* ids = nullptr;           // [R*T, K], not by the prologue
  std::uint64_t* stamped_ids = nullptr;  // [R*T, K], by the prologue
  float* weights = nullptr;              // [R*T, K]
  const Bf16* tokens = nullptr;          // [T, H], this rank's tokens
  Bf16* all_tokens = nullptr;            // [R*T, H], where peers push their tokens to
  const Bf16* partials = nullptr;        // [R*T, H], serial layer: combined rows that peers collect
  Bf16* staging = nullptr;               // [R, T, H]
  Flags* flags = nullptr;
};

// The emulated link (knob link_gbps): a full mesh. A GPU's cap per direction is dealt out in equal lines,
// one to and one from each peer, so that neither its pulls nor its pushes, nor what its peers together
// pull from it and push to it, pass the cap. Who books a row need know its own line only: a booking that
// several GPUs share would take atomics between them, which a PCIe link does not have. With two ranks
// this is the cap itself; with more, fewer than all peers at work on one GPU do not get the idle lines'
// share, as they would behind a switch.
inline constexpr int kLinkFraction = 10;  // fractional bits: a short row takes a few nanoseconds

// Counters of one rank, local to its GPU.
struct Counters {
  std::uint64_t iteration = 0;  // grows by one per iteration
  std::uint64_t begun = 0;      // iteration whose kernel 1 has begun
  std::uint32_t dispenser = 0;  // next position in job order
  std::uint32_t next_tile[2] =
      {};                      // of kernel 1 and kernel 2, where tiles are dealt out by a counter
  std::uint32_t resident = 0;  // block per job: GEMM blocks that have started
  std::uint32_t copied = 0;    // prologue: blocks whose part of the tokens is copied
  std::uint32_t diagnosed = 0;
  std::uint32_t abort = 0;
  // Pacing: when each line of the emulated link is free again, counted from `link_epoch_ns`, with
  // kLinkFraction fractional bits of a nanosecond. By peer.
  std::uint64_t link_epoch_ns = 0;
  std::uint64_t pull_free[kMaxRanks] = {};
  std::uint64_t push_free[kMaxRanks] = {};
  std::uint32_t pushed[kMaxRanks][kMaxWatermarkChunks] = {};  // jobs counted per receiver and chunk
};

// SM clock of a kernel: cycles over nanoseconds, both read by its block 0.
struct ClockStamp {
  std::uint64_t begin_cycles = 0;
  std::uint64_t begin_ns = 0;
  std::uint64_t end_cycles = 0;
  std::uint64_t end_ns = 0;
};

// Known delays for the truth test of the attribution, each added to every operation of its kind.
// [ns]
struct Delays {
  std::uint32_t pull = 0;
  std::uint32_t scatter = 0;
  std::uint32_t job = 0;
  std::uint32_t push = 0;
  std::uint32_t watermark = 0;
  std::uint32_t source_rank = 0;  // pulls from `rank`
  std::uint32_t one_token = 0;    // the pull of `token`
  std::uint32_t one_expert = 0;   // pulls of tokens that are routed to `expert`
  std::int32_t rank = -1;
  std::int32_t token = -1;
  std::int32_t expert = -1;
};

// Faults that the tests inject: signals that this rank does not give, for the bounded waits to turn
// into a diagnosis. -1 = none.
struct Faults {
  std::int32_t lost_flag = -1;         // a Wait, as a number: ids, barrier, start or begun
  std::int32_t lost_pull = -1;         // this token's row is not fetched
  std::int32_t lost_arrival = -1;      // this token's first arrival is not counted
  std::int32_t lost_activations = -1;  // this row block's first tile of kernel 1 is not counted
  std::int32_t lost_tile = -1;         // this row block's first tile of kernel 2 is not counted
  std::int32_t lost_residency = -1;    // this block does not announce itself
  std::int32_t lost_push = -1;         // this token's push is not counted
  std::int32_t lost_watermark = -1;    // this receiver's watermark is not raised

#ifdef __CUDACC__
  __device__ bool loses(Wait flag) const {
    return lost_flag == static_cast<std::int32_t>(flag);
  }
#endif
};

// How kernel 1, kernel 2 and the final reduce follow what is before them on the stream.
enum class LaunchOrder : std::int32_t {
  stream,        // when it has ended
  programmatic,  // block by block, as its blocks leave the SMs (follow.cuh)
};

// A counter of a row block, in a line of its own. A launch counts K arrivals for each token on some hundred of them, and
// what goes to one line is done one after the other: on few lines, gates open microseconds after the last count was sent.
struct alignas(128) RowBlockCounter {
  std::uint32_t value;
};

struct LayerArgs {
  std::int32_t rank = 0, ranks = 0;
  std::int32_t tokens_per_rank = 0, tokens = 0;  // T, R*T
  std::int32_t hidden = 0, experts = 0, topk = 0, intermediate = 0;
  std::int32_t row_blocks_capacity = 0;

  // This rank's input.
  const Bf16* input = nullptr;            // [T, H]
  Bf16* copy_in_to = nullptr;             // [T, H], this rank's shared tokens
  const std::int32_t* own_ids = nullptr;  // [T, K]
  const float* own_weights = nullptr;     // [T, K]
  Bf16* output = nullptr;                 // [T, H]

  // Schedule tables of this rank.
  std::int32_t* expert_rows = nullptr;    // [E+1]
  std::int32_t* slots = nullptr;          // [R*T, K]
  std::int32_t* pull_order = nullptr;     // [R*T]; kernel 1: null = by token
  std::int32_t* job_order = nullptr;      // [R*T]; kernel 2: null = by token
  std::int32_t* slack = nullptr;          // [row_blocks_capacity]
  std::int32_t* token_of_slot = nullptr;  // [rows]

  // Activations, in slot order; capacity rows.
  Bf16* gathered = nullptr;  // [rows, H]
  Bf16* gate_up = nullptr;   // [rows, 2I]
  Bf16* act = nullptr;       // [rows, I]
  Bf16* partial = nullptr;   // [rows, H]

  RowBlockCounter* arrivals = nullptr;  // [row blocks], open at 128
  RowBlockCounter* computed = nullptr;  // [row blocks], activations ready at kernel 1's n_tiles
  RowBlockCounter* done = nullptr;      // [row blocks], partial rows ready at kernel 2's n_tiles
  Counters* counters = nullptr;
  ClockStamp* clock = nullptr;

  // [R*T, H] everybody's tokens; this rank's own are its shared tokens. Serial layer: the all-gather's
  // result; dispatch gather: kernel 1 pulls the others', and its GEMM reads rows here; push: so it does, and the
  // prologues of their ranks have pushed the others' here.
  Bf16* all_tokens = nullptr;
  bool tokens_pushed = false;
  Bf16* combined = nullptr;  // [R*T, H], serial layer: this rank's combined rows

  Shared shared[kMaxRanks];  // by rank, this rank's included
  Guard guard;
  Delays delays;
  Faults faults;
  // Of one row on one line of the emulated link, in 2^-kLinkFraction ns; 0 = the link as it is.
  std::uint64_t link_row_time = 0;
  LaunchOrder launch = LaunchOrder::stream;
  // What this rank's kernels write down, and where; launchers pick the kernels that do so by is_recorded.
  timeline::RecordBuffers records;
  bool is_recorded() const { return records.records != nullptr; }

#ifdef __CUDACC__
  __device__ const Shared& mine() const {
    return shared[rank];
  }
  __device__ int source_rank(int token) const {
    return token / tokens_per_rank;
  }
  __device__ std::uint32_t row_bytes() const {
    return static_cast<std::uint32_t>(hidden) * 2;
  }
  // Chunk of a plane that row t of T lies in, of `chunks` nearly equal ones, and its first row.
  __device__ int chunk_of(int t, int chunks) const {
    return static_cast<int>((static_cast<std::int64_t>(t + 1) * chunks - 1) / tokens_per_rank);
  }
  __device__ int chunk_begin(int chunk, int chunks) const {
    return static_cast<int>(static_cast<std::int64_t>(chunk) * tokens_per_rank / chunks);
  }
#endif
};

}  // namespace fusescope::kernels
