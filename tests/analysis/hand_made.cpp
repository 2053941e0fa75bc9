#include "hand_made.hpp"

#include <algorithm>

namespace fusescope::analysis {

using timeline::Event;

HandMade::HandMade(int ranks, int tokens_per_rank, int topk) {
  timeline_.wiring.ranks = ranks;
  timeline_.wiring.tokens_per_rank = tokens_per_rank;
  timeline_.wiring.topk = topk;
  timeline_.wiring.n_tiles_1 = timeline_.wiring.n_tiles_2 = 1;
  timeline_.meta.sms = 2;
  for (int rank = 0; rank < ranks; ++rank) {
    track(rank, timeline::Stage::stream, timeline::Role::stream, 0);
  }
}

std::uint32_t HandMade::track(int rank, timeline::Stage stage, timeline::Role role, int block,
                              int lane) {
  timeline_.tracks.push_back({rank, rank, stage, role, block, lane});
  return static_cast<std::uint32_t>(timeline_.tracks.size() - 1);
}

void HandMade::phase(int rank, timeline::Kind kind, std::int64_t begin, std::int64_t end,
                     int index) {
  event(static_cast<std::uint32_t>(rank), kind, begin, end, {.index = index});
}

void HandMade::event(std::uint32_t where, timeline::Kind kind, std::int64_t begin, std::int64_t end,
                     const Args& args) {
  timeline_.events.push_back({begin, end, where, args.token, args.row_block, args.index,
                              static_cast<std::int16_t>(args.peer), kind});
}

timeline::Timeline HandMade::build() {
  timeline_.begin_ns = timeline_.events.front().begin_ns;
  timeline_.end_ns = timeline_.events.front().end_ns;
  for (const Event& event : timeline_.events) {
    timeline_.begin_ns = std::min(timeline_.begin_ns, event.begin_ns);
    timeline_.end_ns = std::max(timeline_.end_ns, event.end_ns);
  }
  timeline::sort_events(timeline_);
  return timeline_;
}

}  // namespace fusescope::analysis
