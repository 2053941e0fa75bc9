#pragma once
// The readable line of a stored timeline: everything but the columns, and how long each column is.

#include <cstddef>
#include <string>
#include <vector>

#include "timeline/timeline.hpp"

namespace fusescope::timeline {

struct StoreHeader {
  Timeline shell;                     // meta, wall, scalars of the wiring, counters' names; no rows
  std::vector<std::size_t> hit_rows;  // per rank
  std::vector<std::size_t> expert_rows;  // per rank
  std::vector<std::size_t> tile_rows;    // per rank; none where every row block has its own tiles
  std::size_t track_rows = 0;
  std::size_t event_rows = 0;
  std::vector<std::size_t> counter_rows;  // per counter
  // What the stored numbers mean, by the names that the file gives.
  std::vector<Kind> kinds;
  std::vector<Stage> stages;
  std::vector<Role> roles;
};

std::string header_text(const Timeline& timeline);
// Throws InputError with the JSON path.
StoreHeader read_header(const std::string& text, const std::string& file);

}  // namespace fusescope::timeline
