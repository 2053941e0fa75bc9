#pragma once
// To which step a stretch of the critical path counts. Knows the events' kinds and two marks per
// rank; nothing of the walk.

#include <cstdint>
#include <vector>

#include "analysis/critical_path.hpp"
#include "timeline/dependencies.hpp"

namespace fusescope::analysis {

class PathRules {
 public:
  explicit PathRules(const timeline::Dependencies& dependencies);

  // A stretch [begin, end) of time that the walk gave to an event, or (`gap`) to the idle time
  // before it on its track, in pieces that each count to one step.
  struct Piece {
    std::int64_t begin_ns;
    std::int64_t end_ns;
    Step step;
  };
  struct Pieces {
    Piece piece[2];  // in order of time
    int count;
  };
  // `waiting_row_block`: whose gate wait led the walk here; -1 when none did.
  Pieces classify(timeline::Dependencies::EventId event, std::int64_t begin_ns, std::int64_t end_ns,
                  bool gap, int waiting_row_block) const;

  // When the rank's first tile of GEMM 1 started; the end of time where there is none on record.
  std::int64_t head_end(int rank) const { return marks(rank).head_end_ns; }
  // When its last tile of GEMM 2 ended; the end of time where there is none on record.
  std::int64_t last_tile_end(int rank) const { return marks(rank).last_tile_end_ns; }
  // That tile's epilogue, or Dependencies::kNone.
  timeline::Dependencies::EventId last_tile(int rank) const { return marks(rank).last_tile; }
  // Whether compute blocks ran jobs too.
  bool all_hands(int rank) const { return marks(rank).all_hands; }

  // Whether one of the token's hits lies in a tile of this row block or in an earlier row block.
  bool needs(int rank, int row_block, int token) const;

 private:
  struct Marks {
    std::int64_t head_end_ns = INT64_MAX;
    std::int64_t last_tile_end_ns = INT64_MAX;
    timeline::Dependencies::EventId last_tile = timeline::Dependencies::kNone;
    bool all_hands = false;
  };
  const Marks& marks(int rank) const { return marks_[static_cast<std::size_t>(rank)]; }

  const timeline::Dependencies* dependencies_;
  std::vector<Marks> marks_;  // [rank]
};

// Whether a stretch of this step and kind counts as exposed communication; `gap`: idle time before
// it.
bool exposes(Step step, timeline::Kind kind, bool gap);

}  // namespace fusescope::analysis
