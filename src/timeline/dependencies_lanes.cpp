// Program order across the lanes of a block (Dependencies::previous_on_track).

#include <algorithm>
#include <array>
#include <map>
#include <unordered_map>
#include <utility>

#include "timeline/dependencies.hpp"

namespace fusescope::timeline {
namespace {

// Kinds with which a lane goes on where other lanes of its block have ended.
bool continues_block(Kind kind) {
  return kind == Kind::claim || kind == Kind::gate_wait || kind == Kind::activation_wait ||
         kind == Kind::mainloop;
}

}  // namespace

// Links to an event of another lane, if that ended last. It must also have begun earlier: then no chain
// of links comes back to where it started, whatever the file holds.
void Dependencies::follow(EventId id, EventId earlier) {
  if (earlier == kNone || event(earlier).track == event(id).track ||
      event(earlier).end_ns > event(id).begin_ns || event(earlier).begin_ns >= event(id).begin_ns) {
    return;
  }
  const EventId previous = previous_[id];
  if (previous == kNone || event(previous).end_ns <= event(earlier).end_ns) {
    previous_[id] = earlier;
  }
}

void Dependencies::join_lanes() {
  std::map<std::array<int, 4>, std::vector<std::uint32_t>> blocks;
  for (std::uint32_t track = 0; track < timeline_->tracks.size(); ++track) {
    const Track& what = timeline_->tracks[track];
    const bool slots = what.stage == Stage::dispatch_gemm && what.role == Role::communication;
    if (what.stage != Stage::stream && !slots) {  // token slots wait for none of the others
      blocks[{what.rank, static_cast<int>(what.stage), static_cast<int>(what.role), what.block}]
          .push_back(track);
    }
  }
  for (const auto& [block, tracks] : blocks) {
    if (tracks.size() > 1) {
      join_block(tracks);
    }
  }
  for (EventId id = 0; id < timeline_->events.size(); ++id) {
    EventId& previous = previous_[id];
    while (event(id).kind == Kind::sum && previous != kNone &&
           event(previous).kind == Kind::claim && event(previous).token != event(id).token) {
      previous = previous_[previous];
    }
  }
  for (const auto& [block, tracks] : blocks) {
    if (tracks.size() > 1) {
      join_pushes(tracks);
    }
  }
}

bool Dependencies::fetches(std::uint32_t track) const {
  const Range range = track_events_[track];
  return range.first != range.last && event(range.first).kind == Kind::pull;
}

// Where a block of kernel 1 fetches tokens beside its tiles, the lane that does: the slots that fetch before them
// are through when the first tile begins.
std::uint32_t Dependencies::lane_beside_tiles(const std::vector<std::uint32_t>& tracks) const {
  std::int64_t first_tile_ns = INT64_MAX;
  for (const std::uint32_t track : tracks) {
    const Range range = track_events_[track];
    if (range.first != range.last && continues_block(event(range.first).kind)) {
      first_tile_ns = std::min(first_tile_ns, event(range.first).begin_ns);
    }
  }
  const auto found = std::find_if(tracks.begin(), tracks.end(), [&](std::uint32_t track) {
    return fetches(track) && event(track_events_[track].last - 1).end_ns > first_tile_ns;
  });
  return found == tracks.end() ? kNone : *found;
}

void Dependencies::join_block(const std::vector<std::uint32_t>& tracks) {
  std::map<std::pair<int, int>, EventId> mainloops;
  std::map<int, EventId> sums;
  std::map<int, EventId> fronts;  // by token: what its warpgroup's front did last for it
  for (const std::uint32_t track : tracks) {
    for (EventId id = track_events_[track].first; id < track_events_[track].last; ++id) {
      const Event& what = event(id);
      if (what.kind == Kind::mainloop) {
        mainloops[{what.row_block, what.index}] = id;
      } else if (what.kind == Kind::sum) {
        sums[what.token] = id;
      } else if (what.kind == Kind::claim || what.kind == Kind::ready_wait) {
        fronts[what.token] = id;  // the claim comes first
      }
    }
  }
  const std::uint32_t beside_tiles = lane_beside_tiles(tracks);
  for (const std::uint32_t track : tracks) {
    const Range range = track_events_[track];
    for (EventId id = range.first; id < range.last; ++id) {
      const Event& what = event(id);
      if (what.kind == Kind::epilogue) {
        const auto found = mainloops.find({what.row_block, what.index});
        follow(id, found == mainloops.end() ? kNone : found->second);
      } else if (what.kind == Kind::sum) {
        const auto found = fronts.find(what.token);
        follow(id, found == fronts.end() ? kNone : found->second);
      } else if (what.kind == Kind::push) {
        const auto found = sums.find(what.token);
        follow(id, found == sums.end() ? kNone : found->second);
      } else if (id == range.first && (continues_block(what.kind) || track == beside_tiles)) {
        for (const std::uint32_t other : tracks) {
          if (other == beside_tiles || (track == beside_tiles && !fetches(other))) {
            continue;
          }
          for (EventId at = track_events_[other].first;
               at < track_events_[other].last && event(at).begin_ns < what.begin_ns; ++at) {
            follow(id, at);
          }
        }
      }
    }
  }
}

// A warpgroup's jobs in the order of their sums, which one lane holds; their pushes are on other lanes.
void Dependencies::join_pushes(const std::vector<std::uint32_t>& tracks) {
  struct Push {
    EventId push = kNone;
    EventId released = kNone;  // what the pusher ended last of it
  };
  std::unordered_map<int, Push> pushes;  // by token
  for (const std::uint32_t track : tracks) {
    Push* last = nullptr;
    for (EventId id = track_events_[track].first; id < track_events_[track].last; ++id) {
      const Kind kind = event(id).kind;
      if (kind == Kind::push) {
        last = &pushes[event(id).token];
        *last = {id, id};
      } else if (last != nullptr && (kind == Kind::elect || kind == Kind::watermark)) {
        last->released = id;
      }
    }
  }
  for (const std::uint32_t track : tracks) {
    // Sums beside claims are done by the threads that claim, and go on with the pusher; sums with a lane of
    // their own wait for their buffer alone.
    const bool claims =
        std::any_of(timeline_->events.begin() + track_events_[track].first,
                    timeline_->events.begin() + track_events_[track].last, [](const Event& what) {
                      return what.kind == Kind::claim || what.kind == Kind::ready_wait;
                    });
    Push before;      // of the job before
    Push two_before;  // of the one before that
    for (EventId id = track_events_[track].first; id < track_events_[track].last; ++id) {
      const auto found = event(id).kind == Kind::sum ? pushes.find(event(id).token) : pushes.end();
      if (found == pushes.end() || event(found->second.push).track == track) {
        continue;
      }
      const Push& own = found->second;
      if (claims) {
        follow(id, two_before.released);
        issued_first_[id] = two_before.push == kNone ? before.push : kNone;
      } else {
        held_by_[id] = two_before.push;
        // The second push is issued when the pusher is done with the first, of which there is no record. A
        // pusher that waits for the sum alone goes on promptly.
        constexpr std::int64_t kPromptly = 300;  // [ns]
        if (two_before.push == kNone && event(own.push).begin_ns > event(id).end_ns + kPromptly) {
          held_by_[own.push] = before.push;
        }
      }
      follow(own.push, two_before.released);
      if (before.push != kNone && event(before.push).begin_ns < event(own.push).begin_ns &&
          event(own.push).begin_ns < event(before.push).end_ns) {
        issued_first_[before.push] = own.push;
      }
      two_before = before;
      before = own;
    }
  }
}

}  // namespace fusescope::timeline
