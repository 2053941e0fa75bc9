#include "timeline/timeline.hpp"

#include <algorithm>
#include <tuple>

namespace fusescope::timeline {

std::string_view name(Provenance provenance) {
  return provenance == Provenance::measured ? "measured" : "simulated";
}

bool before(const Event& a, const Event& b) {
  return std::tuple(a.track, a.begin_ns, b.end_ns, a.kind) <
         std::tuple(b.track, b.begin_ns, a.end_ns, b.kind);
}

int Wiring::tile_of(int rank, int row_block) const {
  const auto r = static_cast<std::size_t>(rank);
  const auto b = static_cast<std::size_t>(row_block);
  const bool known = rank >= 0 && r < tile_of_row_block.size() && row_block >= 0 &&
                     b < tile_of_row_block[r].size();
  return known ? tile_of_row_block[r][b] : row_block;
}

int Wiring::last_of_tile(int rank, int row_block) const {
  const auto r = static_cast<std::size_t>(rank);
  if (rank < 0 || r >= tile_of_row_block.size()) {
    return row_block;
  }
  const auto blocks = static_cast<int>(tile_of_row_block[r].size());
  int last = row_block;
  while (last >= 0 && last < blocks - 1 && tile_of(rank, last + 1) == tile_of(rank, row_block)) {
    ++last;
  }
  return last;
}

int Wiring::row_tiles(int rank) const {
  int tiles = 0;
  const auto blocks =
      static_cast<int>(expert_of_row_block.at(static_cast<std::size_t>(rank)).size());
  for (int block = 0; block < blocks; ++block) {
    tiles += tile_of(rank, block) == block;
  }
  return tiles;
}

void sort_events(Timeline& timeline) {
  std::sort(timeline.events.begin(), timeline.events.end(),
            [](const Event& a, const Event& b) { return before(a, b); });
}

}  // namespace fusescope::timeline
