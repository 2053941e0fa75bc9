#include "timeline/records/record_layout.hpp"

#include <algorithm>

namespace fusescope::timeline {
namespace {

int share(int work, int workers) {
  return workers <= 0 ? 0 : (work + workers - 1) / workers;
}

constexpr int kTilePoints = 3;  // of the busiest writer of a tile, the consumer
constexpr int kSlotPoints = 4;  // of a token in its slot
constexpr int kJobPoints = 5;   // of the busiest writer of a job, a pusher that raises a watermark
constexpr int kReducePoints = 4;  // of a chunk, for the block's first writer
constexpr int kLastClaim = 2;     // the claim that finds no job left
constexpr int kJobFloor = 64;     // jobs that even the smallest share has room for
constexpr int kUnevenTiles = 2;   // over the fair share: blocks to which a counter deals tiles
constexpr int kUnevenAlone = 4;   // over the fair share: blocks that run jobs all the time ...
constexpr int kUnevenJoined = 8;  // ... and those that join one by one

class Planner {
 public:
  void add(Family family, int blocks, int writers_per_block, int capacity) {
    FamilyLayout& at = layout_.families[static_cast<std::size_t>(family)];
    at.first_record = layout_.records;
    at.first_writer = layout_.writers;
    at.blocks = static_cast<std::uint32_t>(std::max(blocks, 0));
    at.writers_per_block = static_cast<std::uint32_t>(writers_per_block);
    at.capacity = static_cast<std::uint32_t>(capacity);
    const std::uint32_t writers = at.blocks * at.writers_per_block;
    layout_.writers += writers;
    layout_.records += static_cast<std::uint64_t>(writers) * at.capacity;
  }
  RecordLayout take() const { return layout_; }

 private:
  RecordLayout layout_;
};

int jobs_capacity(int tokens, int groups, int uneven) {
  const long long jobs = static_cast<long long>(share(tokens, groups)) * uneven + kJobFloor;
  return static_cast<int>(std::min<long long>(jobs, tokens)) * kJobPoints + kLastClaim;
}

}  // namespace

RecordLayout lay_out_records(const RecordedWork& work) {
  Planner planner;
  const auto tiles = [&](Family family, int blocks, int n_tiles, bool by_counter) {
    const int fair = share(work.row_blocks * n_tiles, blocks);
    planner.add(family, blocks, kTileWriters,
                kTilePoints * (by_counter ? kUnevenTiles * fair : fair));
  };
  tiles(Family::dispatch_tiles, work.dispatch_compute_blocks, work.n_tiles_1, work.counter_1);
  const int of_slot =
      share(work.tokens - work.beside_tiles, work.dispatch_slot_blocks * work.slots_per_block);
  const int of_last = share(work.beside_tiles, work.dispatch_slot_blocks);
  planner.add(Family::dispatch_slots, work.dispatch_slot_blocks,
              work.slots_per_block + (work.beside_tiles > 0 ? 1 : 0),
              kSlotPoints * std::max(of_slot, of_last));
  tiles(Family::combine_tiles, work.combine_compute_blocks, work.n_tiles_2, work.counter_2);

  const int alone = work.combine_job_blocks * work.job_groups_per_block;
  planner.add(Family::combine_jobs, work.combine_job_blocks,
              work.job_groups_per_block * static_cast<int>(kJobWriters),
              work.block_per_job ? kJobPoints : jobs_capacity(work.tokens, alone, kUnevenAlone));
  const int joined = work.all_hands ? work.combine_compute_blocks : 0;
  planner.add(
      Family::combine_joined, joined, work.job_groups_per_block * static_cast<int>(kJobWriters),
      jobs_capacity(work.tokens, alone + joined * work.job_groups_per_block, kUnevenJoined));
  planner.add(Family::reduce, work.reduce_blocks, work.ranks,
              kReducePoints * work.watermark_chunks);
  return planner.take();
}

}  // namespace fusescope::timeline
