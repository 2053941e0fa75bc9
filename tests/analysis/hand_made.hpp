#pragma once
// Timelines of a few events, written down in a test so that the expected answer can be read off.

#include "timeline/timeline.hpp"

namespace fusescope::analysis {

class HandMade {
 public:
  // Every rank has a stream track; the wall is [0, end) unless `build` is told otherwise.
  explicit HandMade(int ranks, int tokens_per_rank = 1, int topk = 1);

  timeline::Wiring& wiring() { return timeline_.wiring; }
  timeline::Meta& meta() { return timeline_.meta; }

  std::uint32_t track(int rank, timeline::Stage stage, timeline::Role role, int block,
                      int lane = 0);
  void phase(int rank, timeline::Kind kind, std::int64_t begin, std::int64_t end, int index = -1);

  struct Args {
    int token = -1;
    int row_block = -1;
    int index = -1;
    int peer = -1;
  };
  void event(std::uint32_t track, timeline::Kind kind, std::int64_t begin, std::int64_t end,
             const Args& args);

  // Sorted, with the wall from the first begin to the last end.
  timeline::Timeline build();

 private:
  timeline::Timeline timeline_;
};

}  // namespace fusescope::analysis
