#pragma once
// Device side of the prologue's schedule build: all tables of this rank (layer/tables.hpp), element by
// element what the golden builder makes, by one cluster of kScheduleBlocks blocks.
//
// Each warp takes consecutive tokens in slot order, so that the hits of an expert are ordered by warp, and
// within a warp by lane and step. Then
//   take_ids       each hit's expert, as soon as it is there
//   rank_hits      a hit's rank among those of its expert in this warp; each warp's hits per expert
//   share_counts   sums over the block's warps, into the shared memory of every block of the cluster
//   -- barrier of the cluster --
//   place_experts  sums over the blocks, padded; the first row of every expert: expert_rows, slack
//   place_hits     slots; marks the rows that are a token's smallest, or its largest
//   -- barrier of the cluster, and meanwhile all stores that it need not wait for --
//   place_tokens   how many marks lie before a token's own is its place in pull order, and in job order
// Every block counts experts and marks for itself: that is faster than a third barrier. (Marks in every block's shared
// memory, by atomics from all blocks, are not: each of them takes a nanosecond of the SM that it goes to.)
//
// Each id is read once. After a wait for ids was given up they may be anything: an id that is no expert's counts
// as the last expert's, and the tables of any ids at all place each hit in a row of its own.

#include <cooperative_groups.h>

#include <cub/warp/warp_scan.cuh>
#include <cuda/std/bit>

#include <cstdint>

#include "kernels/bounded_wait.cuh"
#include "kernels/layer_args.hpp"
#include "kernels/prologue.hpp"
#include "layer/config.hpp"

namespace fusescope::kernels {

inline constexpr int kPrologueThreads = 1024;
inline constexpr int kPrologueWarps = kPrologueThreads / 32;
inline constexpr int kScheduleBlocks = 8;              // the largest cluster that every device has
inline constexpr int kMostExperts = kPrologueThreads;  // one thread each

// Where a block's shared memory is, in bytes from its begin.
struct BuildLayout {
  std::uint32_t marks_before;  // [row blocks] smallest rows before it; largest ones, 32 bits higher
  std::uint32_t warp_counts;   // [warps, E] hits of each warp, then: of the block's warps before it
  std::uint32_t block_counts;  // [kScheduleBlocks, E] hits of each block of the cluster
  std::uint32_t expert_rows;   // [E+1]
  std::uint32_t filled;        // [E] hits
  std::uint32_t next_row;      // [E] where this block's hits begin
  std::uint32_t stash;         // [warps, hits of a warp], if it is here; the end of the rest

  __host__ __device__ BuildLayout(std::uint32_t experts, std::uint32_t row_blocks)
      : marks_before(0),
        warp_counts(marks_before + row_blocks * 8),
        block_counts(warp_counts + experts * kPrologueWarps * 4),
        expert_rows(block_counts + experts * kScheduleBlocks * 4),
        filled(expert_rows + (experts + 1) * 4),
        next_row(filled + experts * 4),
        stash(next_row + experts * 4) {}
};

class ScheduleBuild {
 public:
  __device__ ScheduleBuild(const PrologueArgs& args, unsigned char* smem)
      : args_(args),
        layer_(args.layer),
        at_(static_cast<std::uint32_t>(layer_.experts),
            static_cast<std::uint32_t>(layer_.row_blocks_capacity)),
        smem_(smem),
        thread_(static_cast<int>(threadIdx.x)),
        warp_(thread_ / 32),
        lane_(thread_ % 32),
        block_(static_cast<int>(blockIdx.x)),
        first_place_((block_ * kPrologueWarps + warp_) * args.tokens_per_warp),
        bits_(cuda::std::bit_width(static_cast<unsigned>(layer_.experts))) {
    const int last = min(first_place_ + args.tokens_per_warp, layer_.tokens);
    tokens_ = max(last - first_place_, 0);
    hits_ = tokens_ * layer_.topk;
    const int most_hits = args.tokens_per_warp * layer_.topk;
    stash_ =
        args.stash != nullptr
            ? args.stash + static_cast<std::int64_t>(block_ * kPrologueWarps + warp_) * most_hits
            : ints(at_.stash) + warp_ * most_hits;
  }

  // Before the ids are there: what does not depend on them.
  __device__ void prepare() const {
    for (int i = thread_; i < kPrologueWarps * layer_.experts; i += kPrologueThreads)
      counts(at_.warp_counts)[i] = 0;
    auto* marks = reinterpret_cast<uint4*>(args_.marks);
    for (int i = cluster_thread(); i < 2 * layer_.row_blocks_capacity; i += kClusterThreads)
      marks[i] = make_uint4(0, 0, 0, 0);
    __syncthreads();
    cluster().barrier_arrive();
  }

  // Stashes the expert of each of the warp's hits, as soon as its id is there.
  __device__ void take_ids(std::uint64_t iteration) const {
    constexpr int kAhead = 4;  // loads under way
    const auto last = static_cast<std::uint32_t>(layer_.experts - 1);
    for (int base = lane_; base < hits_; base += 32 * kAhead) {
      std::uint64_t words[kAhead];
#pragma unroll
      for (int n = 0; n < kAhead; ++n) {
        if (base + n * 32 < hits_)
          words[n] = stamped_id(hit(base + n * 32));
      }
#pragma unroll
      for (int n = 0; n < kAhead; ++n) {
        const int i = base + n * 32;
        if (i < hits_) {
          if (iteration_of(words[n]) < iteration)
            words[n] = wait_for_id(hit(i), iteration);
          stash_[i] = static_cast<int>(min(id_of(words[n]), last));
        }
      }
    }
  }

  // After prepare() and take_ids().
  __device__ void run() const {
    rank_hits();
    __syncthreads();
    // No block may write to another's shared memory before that one has begun. Orders the clearing of
    // the marks before place_hits' atomics, too.
    cluster().barrier_wait();
    share_counts();
    // Orders the counts, in every block's shared memory, before place_experts' loads of them.
    cluster().sync();
    place_experts();
    __syncthreads();
    place_hits();
    // Orders all blocks' marks, in this GPU's memory, before place_tokens' loads of them.
    cluster().barrier_arrive();
    store_experts();
    store_row_blocks();
    store_hits();
    cluster().barrier_wait();
    count_marks();
    __syncthreads();
    place_tokens();
  }

 private:
  using Marks = unsigned long long;
  static constexpr int kClusterThreads = kScheduleBlocks * kPrologueThreads;
  static constexpr unsigned kAll = 0xffffffff;
  static constexpr int kExpertBits = 10;
  static_assert(kMostExperts <= 1 << kExpertBits);

  struct SlotRange {
    int smallest;
    int largest;
  };

  __device__ static cooperative_groups::cluster_group cluster() {
    return cooperative_groups::this_cluster();
  }
  __device__ std::uint32_t* counts(std::uint32_t at) const {
    return reinterpret_cast<std::uint32_t*>(smem_ + at);
  }
  __device__ int* ints(std::uint32_t at) const {
    return reinterpret_cast<int*>(smem_ + at);
  }
  __device__ Marks* marks_before() const {
    return reinterpret_cast<Marks*>(smem_ + at_.marks_before);
  }
  __device__ int cluster_thread() const {
    return block_ * kPrologueThreads + thread_;
  }

  // The tokens in the order in which they lie within an expert.
  __device__ int token_at(int place) const {
    if (args_.slot_order == SlotOrder::interleave_sources)
      return place % layer_.ranks * layer_.tokens_per_rank + place / layer_.ranks;
    if (args_.slot_order == SlotOrder::rotate_from_self) {
      const int token = place + layer_.rank * layer_.tokens_per_rank;
      return token < layer_.tokens ? token : token - layer_.tokens;
    }
    return place;
  }
  // Where the warp's hit number `i` lies among all ids.
  __device__ int hit(int i) const {
    if (args_.slot_order == SlotOrder::by_token)
      return first_place_ * layer_.topk + i;
    const int token = i / layer_.topk;
    return token_at(first_place_ + token) * layer_.topk + i - token * layer_.topk;
  }

  // Relaxed: the word that tells that an id is there is the id's own.
  __device__ std::uint64_t stamped_id(int hit) const {
    return SystemAtomic<std::uint64_t>(layer_.mine().stamped_ids[hit])
        .load(cuda::memory_order_relaxed);
  }

  __device__ std::uint64_t wait_for_id(int hit, std::uint64_t iteration) const {
    std::uint64_t word = 0;
    wait_until_at_least(layer_.guard, Wait::ids, layer_.source_rank(hit / layer_.topk), iteration,
                        [&] {
                          word = stamped_id(hit);
                          return iteration_of(word);
                        });
    return word;
  }

  // Adds to each hit's expert its rank among the warp's hits of that expert.
  __device__ void rank_hits() const {
    for (int base = 0; base < hits_; base += 32) {
      const int i = base + lane_;
      rank_step(i, i < hits_ ? static_cast<std::uint32_t>(stash_[i]) : kAll);
    }
  }

  // The lanes with the same value, an expert or kAll. By ballots, one for each bit: __match_any_sync was slower,
  // where nearly all values differ.
  __device__ unsigned lanes_with(std::uint32_t expert) const {
    unsigned same = kAll;
    for (int bit = 0; bit < bits_; ++bit) {
      const bool set = (expert >> bit & 1) != 0;
      const unsigned with = __ballot_sync(kAll, set);
      same &= set ? with : ~with;
    }
    return same;
  }

  __device__ void rank_step(int i, std::uint32_t expert) const {
    const unsigned same = lanes_with(expert);
    const int before_in_step = __popc(same & ((1U << lane_) - 1));
    const bool valid = i < hits_;
    std::uint32_t* count =
        counts(at_.warp_counts) + warp_ * layer_.experts + (valid ? static_cast<int>(expert) : 0);
    const std::uint32_t before = *count;
    __syncwarp();
    if (valid) {
      if (before_in_step == 0)
        *count = before + __popc(same);
      stash_[i] = static_cast<int>((before + before_in_step) << kExpertBits | expert);
    }
    __syncwarp();
  }

  __device__ void share_counts() const {
    const int e = thread_;
    if (e >= layer_.experts)
      return;
    std::uint32_t* of_warp = counts(at_.warp_counts) + e;
    constexpr int kAhead = 16;  // loads under way
    std::uint32_t sum = 0;
    for (int base = 0; base < kPrologueWarps; base += kAhead) {
      std::uint32_t found[kAhead];
#pragma unroll
      for (int w = 0; w < kAhead; ++w)
        found[w] = of_warp[(base + w) * layer_.experts];
#pragma unroll
      for (int w = 0; w < kAhead; ++w) {
        of_warp[(base + w) * layer_.experts] = sum;
        sum += found[w];
      }
    }
    std::uint32_t* mine = counts(at_.block_counts) + block_ * layer_.experts + e;
    for (int b = 0; b < kScheduleBlocks; ++b)
      *cluster().map_shared_rank(mine, b) = sum;
  }

  template <class T>
  struct Sums {
    T before;  // of the threads before this one
    T all;
  };
  // By all threads. Two levels of warp scans: CUB's block scan holds all warps' sums in registers.
  template <class T>
  __device__ Sums<T> scan(T own, T (&of_warps)[kPrologueWarps]) const {
    using WarpScan = cub::WarpScan<T>;  // of shuffles: its storage is empty
    typename WarpScan::TempStorage none;
    T before, in_warp, before_warp, all;
    WarpScan(none).ExclusiveSum(own, before, in_warp);
    if (lane_ == 0)
      of_warps[warp_] = in_warp;
    __syncthreads();
    WarpScan(none).ExclusiveSum(of_warps[lane_], before_warp, all);
    return {__shfl_sync(kAll, before_warp, warp_) + before, all};
  }

  __device__ void place_experts() const {
    __shared__ int of_warps[kPrologueWarps];
    const int e = thread_;
    int total = 0;
    int before = 0;
    if (e < layer_.experts) {
#pragma unroll
      for (int b = 0; b < kScheduleBlocks; ++b) {
        const auto found = static_cast<int>(counts(at_.block_counts)[b * layer_.experts + e]);
        before += b < block_ ? found : 0;
        total += found;
      }
    }
    const int rows = (total + kRowBlock - 1) / kRowBlock * kRowBlock;
    const int first = scan(rows, of_warps).before;
    if (e >= layer_.experts)
      return;
    ints(at_.expert_rows)[e] = first;
    ints(at_.filled)[e] = total;
    ints(at_.next_row)[e] = first + before;
    if (e == layer_.experts - 1)
      ints(at_.expert_rows)[e + 1] = first + rows;
  }

  __device__ void store_experts() const {
    if (block_ != 0)
      return;
    for (int e = thread_; e <= layer_.experts; e += kPrologueThreads)
      layer_.expert_rows[e] = ints(at_.expert_rows)[e];
  }

  // Slack, and the arrival counters that it seeds.
  __device__ void store_row_blocks() const {
    const int* expert_rows = ints(at_.expert_rows);
    for (int b = cluster_thread(); b < layer_.row_blocks_capacity; b += kClusterThreads) {
      const int row = b * kRowBlock;
      int slack = kRowBlock;  // beyond the real blocks: as if full
      if (row < expert_rows[layer_.experts]) {
        int low = 0;  // the last expert that starts at or before `row`
        int high = layer_.experts;
        while (high - low > 1) {
          const int middle = (low + high) / 2;
          (expert_rows[middle] <= row ? low : high) = middle;
        }
        const int filled = expert_rows[low] + ints(at_.filled)[low] - row;
        slack = max(kRowBlock - filled, 0);
      }
      layer_.slack[b] = slack;
      layer_.arrivals[b].value = static_cast<std::uint32_t>(slack);
    }
  }

  __device__ void place_hits() const {
    const std::uint32_t* of_warp = counts(at_.warp_counts) + warp_ * layer_.experts;
    for (int i = lane_; i < hits_; i += 32) {
      const auto stashed = static_cast<std::uint32_t>(stash_[i]);
      const std::uint32_t expert = stashed & ((1U << kExpertBits) - 1);
      stash_[i] =
          ints(at_.next_row)[expert] + static_cast<int>(of_warp[expert] + (stashed >> kExpertBits));
    }
    __syncwarp();
    for (int i = lane_; i < tokens_; i += 32) {
      const SlotRange range = slot_range(i);
      mark(range.smallest, 0);
      mark(range.largest, 1);
    }
  }

  // Slots, and the token of each; of padding, this rank's first.
  __device__ void store_hits() const {
    for (int i = lane_; i < hits_; i += 32) {
      layer_.slots[hit(i)] = stash_[i];
      layer_.token_of_slot[stash_[i]] = token_at(first_place_ + i / layer_.topk);
    }
    const int* expert_rows = ints(at_.expert_rows);
    for (int i = cluster_thread(); i < layer_.experts * kRowBlock; i += kClusterThreads) {
      const int e = i / kRowBlock;
      const int row = expert_rows[e] + ints(at_.filled)[e] + i % kRowBlock;
      if (row < expert_rows[e + 1])
        layer_.token_of_slot[row] = layer_.rank * layer_.tokens_per_rank;
    }
  }

  __device__ SlotRange slot_range(int token) const {
    const int* slots = stash_ + token * layer_.topk;
    SlotRange range{slots[0], slots[0]};
    for (int k = 1; k < layer_.topk; ++k) {
      range.smallest = min(range.smallest, slots[k]);
      range.largest = max(range.largest, slots[k]);
    }
    return range;
  }

  // A row block has four words of marks of each kind.
  static constexpr int kMarkWords = kRowBlock / 32;
  __device__ void mark(int slot, int kind) const {
    const int word = (slot / kRowBlock * 2 + kind) * kMarkWords + slot % kRowBlock / 32;
    atomicOr(args_.marks + word, 1U << (slot % 32));
  }
  __device__ uint4 marks_of(int row_block, int kind) const {
    return reinterpret_cast<const uint4*>(args_.marks)[row_block * 2 + kind];
  }
  __device__ static int count(const uint4& marks) {
    return __popc(marks.x) + __popc(marks.y) + __popc(marks.z) + __popc(marks.w);
  }

  __device__ void count_marks() const {
    __shared__ Marks of_warps[kPrologueWarps];
    const int row_blocks = ints(at_.expert_rows)[layer_.experts] / kRowBlock;
    Marks before_all = 0;
    for (int base = 0; base < row_blocks; base += kPrologueThreads) {
      const int b = base + thread_;
      Marks own = 0;
      if (b < row_blocks)
        own = static_cast<Marks>(count(marks_of(b, 0))) | static_cast<Marks>(count(marks_of(b, 1)))
                                                              << 32;
      const Sums<Marks> sums = scan(own, of_warps);
      if (b < row_blocks)
        marks_before()[b] = before_all + sums.before;
      before_all += sums.all;
      __syncthreads();  // before the next round's sums of the warps
    }
  }

  __device__ void place_tokens() const {
    for (int i = lane_; i < tokens_; i += 32) {
      const SlotRange range = slot_range(i);
      const int token = token_at(first_place_ + i);
      layer_.pull_order[place(range.smallest, 0)] = token;
      layer_.job_order[place(range.largest, 1)] = token;
    }
  }

  // Marks of this kind before the slot's own.
  __device__ int place(int slot, int kind) const {
    const uint4 marks = marks_of(slot / kRowBlock, kind);
    const Marks low = marks.x | static_cast<Marks>(marks.y) << 32;
    const Marks high = marks.z | static_cast<Marks>(marks.w) << 32;
    const int bit = slot % kRowBlock;
    const Marks below = (Marks{1} << (bit % 64)) - 1;
    const int in_block = bit < 64 ? __popcll(low & below) : __popcll(low) + __popcll(high & below);
    return static_cast<int>(
               static_cast<std::uint32_t>(marks_before()[slot / kRowBlock] >> (32 * kind))) +
           in_block;
  }

  const PrologueArgs& args_;
  const LayerArgs& layer_;
  const BuildLayout at_;
  unsigned char* const smem_;
  const int thread_, warp_, lane_, block_;
  const int first_place_;  // the warp's first token, in slot order
  const int bits_;         // of an expert's number and of another, all ones, that is none's
  int tokens_ = 0;         // the warp's
  int hits_ = 0;
  int* stash_ = nullptr;  // [hits_] expert and rank of a hit, then its slot
};

}  // namespace fusescope::kernels
