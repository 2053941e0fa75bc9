#pragma once
// How large a rank's record buffers must be: from what its kernels will do, so that nothing is
// dropped. Exact for tiles, tokens and the final reduce. Which warpgroup runs how many jobs is decided by
// the dispenser as it goes: there the share is multiplied, and what still does not fit is counted.

#include <array>
#include <cstddef>

#include "timeline/records/record.hpp"

namespace fusescope::timeline {

// What one rank's iteration does, in numbers.
struct RecordedWork {
  int ranks = 0;
  int tokens = 0;      // R*T
  int row_blocks = 0;  // the most that there may be
  int n_tiles_1 = 0, n_tiles_2 = 0;
  bool counter_1 = false,
       counter_2 = false;  // tiles are dealt out by a counter, not in equal shares
  int watermark_chunks = 1;
  int dispatch_compute_blocks = 0;
  int dispatch_slot_blocks = 0;  // blocks that fetch tokens
  int slots_per_block = 0;
  int beside_tiles = 0;  // tokens that one more slot of each block fetches
  int combine_compute_blocks = 0;
  int combine_job_blocks = 0;    // that run nothing but jobs; block per job: R*T
  int job_groups_per_block = 0;  // warpgroups that run jobs independently; block per job: 1
  bool block_per_job = false;
  bool all_hands = false;  // compute blocks join the jobs
  int reduce_blocks = 0;
};

struct RecordLayout {
  std::array<FamilyLayout, kFamilies> families;
  std::uint64_t records = 0;
  std::uint32_t writers = 0;
  std::size_t bytes() const { return records * sizeof(Record); }
  const FamilyLayout& operator[](Family family) const {
    return families[static_cast<std::size_t>(family)];
  }
};

RecordLayout lay_out_records(const RecordedWork& work);

}  // namespace fusescope::timeline
