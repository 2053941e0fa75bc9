// The tile shapes that the grouped GEMM is built for, as data: one constexpr list of keys and one
// constexpr validity rule. Everything that names a variant (kernels, registry, CLI, tests) reads
// this file. Plain C++20: no CUDA header, so host-only code may include it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

namespace fusescope::kernels {

// Rows of a row block. Fixed: the schedule tables pad every expert to it.
inline constexpr int kBlockRows = 128;

// Shared memory that one block may ask for on sm_90 and sm_100, and on sm_120. [bytes]
inline constexpr int kMaxSharedBytes = 227 * 1024;
inline constexpr int kSmallSharedBytes = 99 * 1024;

// What happens to an accumulated tile.
enum class Epilogue : std::uint8_t {
  kStore,    // D[rows, N] = A * B^T
  kSiluMul,  // D[rows, N/2] = silu(A * B[:N/2]^T) * (A * B[N/2:]^T)
};

// Which instructions multiply.
enum class Mainloop : std::uint8_t {
  kWgmma,  // sm_90a alone
  kMma,    // mma.sync and ldmatrix: every GPU with bulk tensor copies
};

struct GemmVariant {
  int block_n = 256;  // columns of B per tile: 128 or 256
  int block_k = 64;   // depth of one ring stage; 64 bf16 fill one 128-byte swizzle row
  int stages = 4;     // ring depth
  Epilogue epilogue = Epilogue::kStore;
  // Write a tile's output under the multiplication of the block's next tile that has rows in the same
  // half, and signal it only then: gates must not wait for signals of the same block.
  bool deferred = false;
  // Each row of a tile is brought on its own, from where a table says (GroupedGemmArgs::a_rows): rows
  // of A that several rows of D read lie in memory once.
  bool gathers = false;
  Mainloop mainloop = Mainloop::kWgmma;
  // D^T = B * A^T: the weights are the rows of a wgmma, which come by 64, and the rows of A its columns, which
  // come by eights, so that padding behind a step of 16 is not multiplied.
  bool transposed = false;
  // Transposed with the activation: leaves shared memory for what the kernel does beside the tiles (Gate::work), and
  // has less for output.
  bool leaves_room = false;

  friend constexpr bool operator==(const GemmVariant&, const GemmVariant&) = default;

  // Whether a half's rows that hold nothing lie before the others in a tile: the copy begins that many rows before
  // the half, where its tensor map says there is nothing, and brings zeros. Zeros take less power than what the
  // padding holds, and where power is the limit, that is time. (No store may begin before a tensor, so that the
  // epilogue puts the rows back to where they belong.)
  constexpr bool shifts() const { return mainloop == Mainloop::kWgmma && !gathers && !transposed; }

  // Columns of D that one tile writes.
  constexpr int out_cols() const { return epilogue == Epilogue::kSiluMul ? block_n / 2 : block_n; }
};

// --- rows of a tile --------------------------------------------------------------------------------

inline constexpr int kConsumerGroups = 2;    // halves of a tile; of wgmma, a warpgroup for each
inline constexpr int kConsumerRows = 64;     // rows of a half
inline constexpr int kWarpsPerConsumer = 4;  // wgmma

// Halves of a row block that hold some of its first `rows` rows.
constexpr int halves_of(int rows) {
  return rows > kConsumerRows ? 2 : 1;
}
// Rows of a half that hold nothing.
constexpr int empty_rows(int rows, int half) {
  const int held = rows - half * kConsumerRows;
  return held < kConsumerRows ? kConsumerRows - held : 0;
}

// Transposed: a tile is so many row blocks of an expert, or what is left of them. An expert's last row block goes
// with the tile before it, if it holds few rows: it would bring all of the weights for them once more.
inline constexpr int kMostTransposedExperts = 1024;
inline constexpr int kRowStep = 16;
inline constexpr int kFewRows = 2 * kRowStep;
constexpr int blocks_per_tile(const GemmVariant& v) {
  return v.transposed && v.block_n == 128 ? 2 : 1;
}
constexpr int most_rows(const GemmVariant& v) {
  return blocks_per_tile(v) * kBlockRows + (v.transposed ? kFewRows : 0);
}
// At least one for each row block: a tile of two is loaded and multiplied in two parts.
constexpr int steps_of(const GemmVariant& v, int rows) {
  const int steps = (rows + kRowStep - 1) / kRowStep;
  return steps < blocks_per_tile(v) ? blocks_per_tile(v) : steps;
}
// Of these, in the first part.
constexpr int first_part(const GemmVariant& v, int steps) {
  return blocks_per_tile(v) == 1 ? steps : (steps + 1) / 2;
}
// One wgmma takes at most so many steps of a tile, and so many boxes of different heights bring them.
inline constexpr int kMostSteps = (kBlockRows + kFewRows) / kRowStep;

// --- shared memory of one variant, in the order in which it is laid out [bytes] -----------------

// Columns of one staged output chunk: 128 bytes, or what a warpgroup has of a tile.
inline constexpr int kStagedCols = 64;
constexpr int staged_cols(const GemmVariant& v) {
  return v.transposed && v.out_cols() < 2 * kStagedCols ? v.out_cols() / 2 : kStagedCols;
}

constexpr int a_stage_bytes(const GemmVariant& v) {
  return most_rows(v) * v.block_k * 2;
}
constexpr int b_stage_bytes(const GemmVariant& v) {
  return v.block_n * v.block_k * 2;
}
// Of a stage, wgmma: what one warpgroup alone reads, its rows of A or, transposed, its columns of B.
constexpr int own_stage_bytes(const GemmVariant& v) {
  return (v.transposed ? b_stage_bytes(v) : a_stage_bytes(v)) / kConsumerGroups;
}
// Tensor boxes that bring one stage of B.
constexpr int b_boxes(const GemmVariant& v) {
  return v.epilogue == Epilogue::kSiluMul && blocks_per_tile(v) == 1 ? 2 : 1;
}
constexpr int ring_bytes(const GemmVariant& v) {
  return v.stages * (a_stage_bytes(v) + b_stage_bytes(v));
}
// Barriers and tile headers sit behind the big buffers, and tables of rows and experts where a variant has both. Static
// variables of the kernels take no more than kStaticBytes.
constexpr int control_bytes(const GemmVariant& v) {
  return v.transposed && v.gathers ? 2048 : 1024;
}
inline constexpr int kStaticBytes = 1024;

// Output chunks of a half that are there for output alone. The mma.sync form stages whole tiles: its warps finish
// their parts at different times.
constexpr int staged_chunks(const GemmVariant& v) {
  if (v.mainloop == Mainloop::kMma)
    return v.out_cols() / kStagedCols;
  return v.transposed ? 1 : 2;
}
constexpr int work_bytes(const GemmVariant& v) {
  return v.leaves_room ? 8192 : 0;
}
// Rows of a staged output chunk. Transposed: as many steps as there is shared memory for, but for what the
// control area and static variables of the kernels take.
constexpr int staged_rows(const GemmVariant& v) {
  if (!v.transposed)
    return kConsumerRows;
  const int step_bytes = kConsumerGroups * staged_chunks(v) * kRowStep * staged_cols(v) * 2;
  return (kMaxSharedBytes - control_bytes(v) - kStaticBytes - ring_bytes(v) - work_bytes(v)) /
         step_bytes * kRowStep;
}
constexpr int staged_chunk_bytes(const GemmVariant& v) {
  return staged_rows(v) * staged_cols(v) * 2;
}
// Chunks that a warpgroup writes of a tile, at most.
constexpr int chunks_of_tile(const GemmVariant& v) {
  if (!v.transposed)
    return v.out_cols() / kStagedCols;
  return v.out_cols() / kConsumerGroups / staged_cols(v) *
         ((most_rows(v) + staged_rows(v) - 1) / staged_rows(v));
}
// wgmma: chunks of a warpgroup, where it needs more, that lie in the ring: in the last stage of the tile that is
// written out, where that had what this warpgroup alone has read. The producer gets the stage back when they have
// been copied out.
constexpr int lent_chunks(const GemmVariant& v) {
  if (v.mainloop == Mainloop::kMma || v.deferred)
    return 0;
  const int there = own_stage_bytes(v) / staged_chunk_bytes(v);
  const int missing = chunks_of_tile(v) - staged_chunks(v);
  return missing <= 0 ? 0 : there < missing ? there : missing;
}
constexpr int all_chunks(const GemmVariant& v) {
  return lent_chunks(v) + staged_chunks(v);
}
constexpr int staged_bytes(const GemmVariant& v) {
  return kConsumerGroups * staged_chunks(v) * staged_chunk_bytes(v);
}
constexpr int work_at(const GemmVariant& v) {
  return ring_bytes(v) + staged_bytes(v);
}
// What a block may reuse once its tiles are done. The mma.sync form has some bytes to spare: 96 KiB hold
// twelve rows of 4096, and these their barriers.
constexpr int reusable_bytes(const GemmVariant& v) {
  return work_at(v) + work_bytes(v) + (v.mainloop == Mainloop::kMma ? 512 : 0);
}

// Dynamic shared memory of a block that runs this variant. The base must be 1024-byte aligned.
constexpr int shared_bytes(const GemmVariant& v) {
  return reusable_bytes(v) + control_bytes(v);
}

// --- threads -------------------------------------------------------------------------------------

// wgmma: two consumer warpgroups, then the copy warpgroup. mma.sync: four consumer warps, the producer, the
// storer, the scheduler, and one that only jobs need: a quarter of an SM has 16384 registers for its warps, and
// with a third one there would be 168 for each thread, where the accumulators alone take 128.
constexpr int gemm_threads(const GemmVariant& v) {
  return v.mainloop == Mainloop::kMma ? 256 : 384;
}
// The producer: the first thread behind the consumers. The storers are the first threads of the next warps.
constexpr int copy_thread(const GemmVariant& v) {
  return v.mainloop == Mainloop::kMma ? 128 : 256;
}

// --- the validity rule ---------------------------------------------------------------------------

constexpr bool is_valid(const GemmVariant& v) {
  const bool mma = v.mainloop == Mainloop::kMma;
  return (v.block_n == 128 || (!mma && v.block_n == 256)) &&
         (v.block_k == 64 || (mma && v.block_k == 32)) && !(mma && (v.deferred || v.gathers)) &&
         !(v.transposed && (mma || v.deferred)) &&
         !(v.leaves_room && (!v.transposed || v.gathers || v.epilogue != Epilogue::kSiluMul)) &&
         v.stages >= 2 && v.stages <= 8 && shared_bytes(v) <= kMaxSharedBytes;
}

constexpr GemmVariant gathering(GemmVariant v) {
  v.gathers = true;
  return v;
}
constexpr GemmVariant transposed(GemmVariant v) {
  v.transposed = true;
  return v;
}
constexpr GemmVariant leaving_room(GemmVariant v) {
  v.leaves_room = true;
  return v;
}
constexpr GemmVariant by_mma(GemmVariant v) {
  v.mainloop = Mainloop::kMma;
  return v;
}

// --- the list ------------------------------------------------------------------------------------

inline constexpr std::array kGemmVariants = {
    GemmVariant{256, 64, 4, Epilogue::kStore},
    GemmVariant{256, 64, 4, Epilogue::kSiluMul},
    GemmVariant{128, 64, 6, Epilogue::kStore},
    GemmVariant{128, 64, 6, Epilogue::kSiluMul},
    GemmVariant{256, 64, 4, Epilogue::kStore, true},
    gathering({256, 64, 4, Epilogue::kStore}),
    gathering({256, 64, 4, Epilogue::kSiluMul}),
    gathering({128, 64, 6, Epilogue::kStore}),
    gathering({128, 64, 6, Epilogue::kSiluMul}),
    transposed({256, 64, 4, Epilogue::kStore}),
    transposed({256, 64, 4, Epilogue::kSiluMul}),
    transposed({128, 64, 4, Epilogue::kStore}),
    transposed({128, 64, 4, Epilogue::kSiluMul}),
    gathering(transposed({256, 64, 4, Epilogue::kSiluMul})),
    leaving_room(transposed({256, 64, 4, Epilogue::kSiluMul})),
    leaving_room(transposed({128, 64, 4, Epilogue::kSiluMul})),
    by_mma({128, 64, 6, Epilogue::kStore}),
    by_mma({128, 64, 6, Epilogue::kSiluMul}),
    by_mma({128, 32, 4, Epilogue::kStore}),
    by_mma({128, 32, 5, Epilogue::kSiluMul}),
};

// Those of the mma.sync mainloop come last; the kernels of each mainloop are compiled for other GPUs.
inline constexpr int kFirstMmaVariant = [] {
  int first = 0;
  while (kGemmVariants[static_cast<std::size_t>(first)].mainloop != Mainloop::kMma)
    ++first;
  return first;
}();

constexpr bool all_valid() {
  for (const GemmVariant& v : kGemmVariants) {
    if (!is_valid(v))
      return false;
  }
  return true;
}
static_assert(all_valid(), "a listed GEMM variant breaks the validity rule");

// Position in the list, or -1. Kernels are templates over the position: nvcc 13.0 writes broken
// host stubs for a __global__ template whose parameter has a class type.
constexpr int variant_index(const GemmVariant& v) {
  for (std::size_t i = 0; i < kGemmVariants.size(); ++i) {
    if (kGemmVariants[i] == v)
      return static_cast<int>(i);
  }
  return -1;
}

// "n256_s4_store", "n128_s6_silu_mul", "mma_n128_k32_s4_store", ...
inline std::string to_string(const GemmVariant& v) {
  std::string name = v.mainloop == Mainloop::kMma ? "mma_n" : "n";
  name += std::to_string(v.block_n);
  if (v.mainloop == Mainloop::kMma)
    name += "_k" + std::to_string(v.block_k);
  name += "_s";
  name += std::to_string(v.stages);
  if (v.deferred)
    name += "_d";
  if (v.gathers)
    name += "_gather";
  if (v.transposed)
    name += "_t";
  if (v.leaves_room)
    name += "_room";
  name += v.epilogue == Epilogue::kSiluMul ? "_silu_mul" : "_store";
  return name;
}

}  // namespace fusescope::kernels
