#include "analysis/block_order.hpp"

#include <algorithm>
#include <utility>

namespace fusescope::analysis {

using timeline::Dependencies;
using timeline::Event;
using timeline::Kind;
using timeline::Stage;
using timeline::Timeline;
using timeline::Track;
using EventId = BlockOrder::EventId;

namespace {

// A block within its kernel: roles may count their blocks from 0 each.
std::uint64_t block_of(const Track& track) {
  return (static_cast<std::uint64_t>(track.role) << 32) | static_cast<std::uint32_t>(track.block);
}

bool is_tile(const Event& event) {
  return event.kind == Kind::mainloop || event.kind == Kind::epilogue;
}

}  // namespace

EventId BlockOrder::last_begun_before(std::uint32_t track, std::int64_t at_ns) const {
  const Dependencies::Range range = dependencies_.events_of_track(track);
  const auto begin = dependencies_.timeline().events.begin();
  const auto after =
      std::partition_point(begin + range.first, begin + range.last,
                           [at_ns](const Event& event) { return event.begin_ns < at_ns; });
  return after == begin + range.first ? kNone : static_cast<EventId>(after - begin - 1);
}

EventId BlockOrder::at_its_tiles(std::uint32_t track, std::int64_t at_ns) {
  const auto until = [this, at_ns](EventId id) {
    return std::pair(std::min(event(id).end_ns, at_ns), event(id).begin_ns);
  };
  EventId doing = kNone;
  for (const std::uint32_t lane : tile_lanes(track)) {
    const EventId last = last_begun_before(lane, at_ns);
    if (last != kNone && (doing == kNone || until(last) > until(doing))) {
      doing = last;
    }
  }
  return doing;
}

EventId BlockOrder::last_end_before(const std::vector<EventId>& ends, std::int64_t at_ns) const {
  const auto after =
      std::upper_bound(ends.begin(), ends.end(), at_ns,
                       [this](std::int64_t at, EventId end) { return at < event(end).end_ns; });
  return after == ends.begin() ? kNone : *(after - 1);
}

EventId BlockOrder::freed_the_sm(EventId id) {
  const Track& track = dependencies_.track_of(id);
  return last_end_before(block_ends(track.rank, track.stage), event(id).begin_ns);
}

EventId BlockOrder::left_the_sm(EventId id) {
  const Track& track = dependencies_.track_of(id);
  if (track.stage != Stage::gemm_combine_push && track.stage != Stage::final_reduce) {
    return kNone;
  }
  const Stage before =
      track.stage == Stage::final_reduce ? Stage::gemm_combine_push : Stage::dispatch_gemm;
  return last_end_before(block_ends(track.rank, before), event(id).begin_ns);
}

const std::vector<EventId>& BlockOrder::block_ends(int rank, Stage stage) {
  const auto [found, missing] =
      ends_.try_emplace(rank * timeline::kStages + static_cast<int>(stage));
  std::vector<EventId>& ends = found->second;
  if (!missing) {
    return ends;
  }
  const Timeline& timeline = dependencies_.timeline();
  std::unordered_map<std::uint64_t, EventId> last_of_block;
  for (std::uint32_t t = 0; t < timeline.tracks.size(); ++t) {
    const Track& track = timeline.tracks[t];
    const Dependencies::Range range = dependencies_.events_of_track(t);
    if (track.rank != rank || track.stage != stage || range.first == range.last) {
      continue;
    }
    const auto [block, first_lane] = last_of_block.try_emplace(block_of(track), range.last - 1);
    if (!first_lane && event(range.last - 1).end_ns > event(block->second).end_ns) {
      block->second = range.last - 1;
    }
  }
  for (const auto& [block, last] : last_of_block) {
    ends.push_back(last);
  }
  std::sort(ends.begin(), ends.end(), [this](EventId a, EventId b) {
    return std::pair(event(a).end_ns, a) < std::pair(event(b).end_ns, b);
  });
  return ends;
}

const std::vector<std::uint32_t>& BlockOrder::tile_lanes(std::uint32_t track) {
  const auto [found, missing] = tile_lanes_.try_emplace(track);
  std::vector<std::uint32_t>& lanes = found->second;
  if (!missing) {
    return lanes;
  }
  const Timeline& timeline = dependencies_.timeline();
  const Track& whose = timeline.tracks[track];
  for (std::uint32_t t = 0; t < timeline.tracks.size(); ++t) {
    const Track& lane = timeline.tracks[t];
    const Dependencies::Range range = dependencies_.events_of_track(t);
    if (lane.rank == whose.rank && lane.stage == whose.stage && block_of(lane) == block_of(whose) &&
        std::any_of(timeline.events.begin() + range.first, timeline.events.begin() + range.last,
                    is_tile)) {
      lanes.push_back(t);
    }
  }
  return lanes;
}

}  // namespace fusescope::analysis
