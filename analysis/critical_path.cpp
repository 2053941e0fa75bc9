// The walk back along the binding predecessors. What a stretch of time counts as is path_rules'
// business.

#include "analysis/critical_path.hpp"

#include <algorithm>
#include <numeric>
#include <unordered_map>

#include "analysis/path_rules.hpp"

namespace fusescope::analysis {
namespace {

using timeline::Dependencies;
using timeline::Event;
using timeline::Kind;
using timeline::Stage;
using timeline::Timeline;
using timeline::Track;
using EventId = Dependencies::EventId;
constexpr EventId kNone = Dependencies::kNone;

// All ranks do it together: it cannot go on before the last one entered.
bool is_collective(Kind kind) {
  return kind == Kind::barrier || kind == Kind::ids_exchange || kind == Kind::all_gather ||
         kind == Kind::reduce_scatter;
}

bool is_wait(Kind kind) {
  return kind == Kind::gate_wait || kind == Kind::ready_wait || kind == Kind::reduce_wait;
}

class Walk {
 public:
  explicit Walk(const Dependencies& dependencies)
      : dependencies_(dependencies),
        timeline_(dependencies.timeline()),
        rules_(dependencies),
        visited_(timeline_.events.size(), false),
        now_(timeline_.end_ns) {
    const auto ranks = static_cast<std::size_t>(std::max(timeline_.wiring.ranks, 0));
    path_.by_source_rank.assign(ranks, 0);
    path_.by_rank.assign(ranks, 0);
  }

  CriticalPath run() {
    Goal goal = start();
    while (goal.event != kNone && now_ > timeline_.begin_ns) {
      goal = step(goal);
    }
    if (now_ > timeline_.begin_ns) {
      // Before the first phase of the rank that the walk ended on: it started later than another.
      if (!finished_at_first_phase_) {
        path_.unexplained_ns = now_ - timeline_.begin_ns;
      }
      add(timeline_.begin_ns, now_, Step::launch_gap, kNone, false, -1);
    }
    std::reverse(path_.segments.begin(), path_.segments.end());
    sum_up();
    return std::move(path_);
  }

 private:
  // Where the walk stands: it has come to this event, at the end or (`at_begin`) at the begin of
  // it.
  struct Goal {
    EventId event = kNone;
    bool at_begin = false;
  };

  Goal start() const {
    EventId last = kNone;
    for (EventId id = 0; id < timeline_.events.size(); ++id) {
      const Event& event = timeline_.events[id];
      if (timeline_.tracks[event.track].stage == Stage::stream &&
          (last == kNone || event.end_ns > timeline_.events[last].end_ns)) {
        last = id;
      }
    }
    return {last, false};
  }

  Goal step(const Goal& goal) {
    const EventId id = goal.event;
    const Event& event = dependencies_.event(id);
    const bool stream = dependencies_.track_of(id).stage == Stage::stream;
    if (!goal.at_begin) {
      if (visited_[id]) {
        return {};
      }
      visited_[id] = true;
      // A phase may be followed by a gap, and so may a block's last event.
      give_gap_after(event.end_ns, id);
      if (stream) {
        if (const Goal next = into_phase(id); next.event != kNone) {
          return next;
        }
      } else if (is_wait(event.kind)) {
        if (const Goal next = to_cause(id); next.event != kNone) {
          return next;
        }
      }
      give(event.begin_ns, id, false);
    } else {
      now_ = std::max(std::min(now_, event.begin_ns), timeline_.begin_ns);
    }
    return stream ? before_phase(id) : before_on_track(id);
  }

  // What a phase waited for inside: its blocks, or the last rank to enter.
  Goal into_phase(EventId id) {
    const Event& event = dependencies_.event(id);
    const EventId cause = dependencies_.cause(id);
    if (cause == kNone || visited_[cause]) {
      return {};
    }
    if (is_collective(event.kind)) {
      give(std::max(dependencies_.event(cause).begin_ns, event.begin_ns), id, false);
      visited_[cause] = true;
      return {cause, true};
    }
    return {cause, false};  // its end to the phase's end becomes a gap
  }

  // What a wait waited for, if that came after the wait began.
  Goal to_cause(EventId id) {
    const Event& event = dependencies_.event(id);
    const EventId cause = dependencies_.cause(id);
    waiting_row_block_ = event.kind == Kind::gate_wait ? event.row_block : -1;
    if (cause == kNone) {
      ++path_.causes_missing;
      return {};
    }
    if (visited_[cause] || dependencies_.event(cause).end_ns <= event.begin_ns) {
      return {};
    }
    give(dependencies_.event(cause).end_ns, id, false);
    return {cause, false};
  }

  Goal before_phase(EventId id) {
    const EventId previous = dependencies_.previous_on_track(id);
    finished_at_first_phase_ = previous == kNone;
    if (previous != kNone) {
      give(dependencies_.event(previous).end_ns, id, true);
    }
    return {previous, false};
  }

  Goal before_on_track(EventId id) {
    if (const EventId previous = dependencies_.previous_on_track(id); previous != kNone) {
      give(dependencies_.event(previous).end_ns, id, true);
      return {previous, false};
    }
    const Track& track = dependencies_.track_of(id);
    if (const EventId freed = freed_the_sm(id); freed != kNone && !visited_[freed]) {
      give(dependencies_.event(freed).end_ns, id, true);
      return {freed, false};
    }
    const Kind kind = timeline::phase_of(track.stage, timeline_.meta.serial);
    const EventId phase = dependencies_.phase(track.rank, kind);
    if (phase != kNone) {
      const std::int64_t begin = std::min(dependencies_.event(phase).begin_ns, now_);
      add(begin, now_, Step::launch_gap, kNone, false, static_cast<std::int16_t>(track.rank));
    }
    return {phase, true};
  }

  // The last event of the block of the same kernel that ended last before this one began.
  EventId freed_the_sm(EventId id) {
    const Track& track = dependencies_.track_of(id);
    const std::vector<EventId>& ends = block_ends(track.rank, track.stage);
    const std::int64_t begin = dependencies_.event(id).begin_ns;
    const auto after = std::upper_bound(
        ends.begin(), ends.end(), begin,
        [&](std::int64_t at, EventId end) { return at < dependencies_.event(end).end_ns; });
    return after == ends.begin() ? kNone : *(after - 1);
  }

  // The last event of every block of a kernel, by its end.
  const std::vector<EventId>& block_ends(int rank, Stage stage) {
    const int key = rank * 4 + static_cast<int>(stage);
    const auto [found, missing] = block_ends_.try_emplace(key);
    std::vector<EventId>& ends = found->second;
    if (missing) {
      std::unordered_map<int, EventId> last_of_block;
      for (std::uint32_t t = 0; t < timeline_.tracks.size(); ++t) {
        const Track& track = timeline_.tracks[t];
        const Dependencies::Range range = dependencies_.events_of_track(t);
        if (track.rank != rank || track.stage != stage || range.first == range.last) {
          continue;
        }
        const EventId last = range.last - 1;
        const auto [block, first_lane] = last_of_block.try_emplace(track.block, last);
        if (!first_lane &&
            dependencies_.event(last).end_ns > dependencies_.event(block->second).end_ns) {
          block->second = last;
        }
      }
      for (const auto& [block, last] : last_of_block) {
        ends.push_back(last);
      }
      std::sort(ends.begin(), ends.end(), [&](EventId a, EventId b) {
        return std::pair(dependencies_.event(a).end_ns, a) <
               std::pair(dependencies_.event(b).end_ns, b);
      });
    }
    return ends;
  }

  // Time after an event that nothing on the path accounts for.
  void give_gap_after(std::int64_t end_ns, EventId id) {
    const std::int64_t end = std::max(end_ns, timeline_.begin_ns);
    if (end < now_) {
      add(end, now_, Step::launch_gap, kNone, false,
          static_cast<std::int16_t>(dependencies_.rank_of(id)));
    }
  }

  // Gives [begin, now) to an event, or to the idle time before it.
  void give(std::int64_t begin_ns, EventId id, bool gap) {
    const std::int64_t begin = std::max(begin_ns, timeline_.begin_ns);
    if (begin >= now_) {
      return;
    }
    const PathRules::Pieces pieces = rules_.classify(id, begin, now_, gap, waiting_row_block_);
    for (int i = pieces.count - 1; i >= 0; --i) {
      const PathRules::Piece& piece = pieces.piece[i];
      add(piece.begin_ns, piece.end_ns, piece.step, gap ? kNone : id,
          exposes(piece.step, dependencies_.event(id).kind, gap),
          static_cast<std::int16_t>(dependencies_.rank_of(id)));
    }
  }

  void add(std::int64_t begin_ns, std::int64_t end_ns, Step step, EventId id, bool exposed,
           std::int16_t rank) {
    if (begin_ns >= end_ns) {
      return;
    }
    const bool dispatch = step == Step::dispatch_head || step == Step::dispatch_order ||
                          step == Step::dispatch_bandwidth;
    path_.segments.push_back(
        {begin_ns, end_ns, step, exposed, rank, dispatch ? waiting_row_block_ : -1, id});
    now_ = begin_ns;
  }

  void sum_up() {
    std::unordered_map<int, std::int64_t> tokens;
    for (const Segment& segment : path_.segments) {
      const std::int64_t ns = segment.end_ns - segment.begin_ns;
      const auto step = static_cast<std::size_t>(segment.step);
      path_.by_step[step] += ns;
      path_.exposed_by_step[step] += segment.exposed ? ns : 0;
      if (segment.rank >= 0 && static_cast<std::size_t>(segment.rank) < path_.by_rank.size()) {
        path_.by_rank[static_cast<std::size_t>(segment.rank)] += ns;
      }
      if (segment.event == kNone) {
        continue;
      }
      const Event& event = dependencies_.event(segment.event);
      path_.by_kind[static_cast<std::size_t>(event.kind)] += ns;
      if (event.token >= 0) {
        tokens[event.token] += ns;
      }
      if (event.kind == Kind::pull && event.peer >= 0 &&
          static_cast<std::size_t>(event.peer) < path_.by_source_rank.size()) {
        path_.by_source_rank[static_cast<std::size_t>(event.peer)] += ns;
      }
    }
    for (const auto& [token, ns] : tokens) {
      path_.by_token.push_back({token, ns});
    }
    std::sort(path_.by_token.begin(), path_.by_token.end(),
              [](const TokenTime& a, const TokenTime& b) {
                return std::pair(-a.ns, a.token) < std::pair(-b.ns, b.token);
              });
  }

  const Dependencies& dependencies_;
  const Timeline& timeline_;
  PathRules rules_;
  std::vector<bool> visited_;
  std::unordered_map<int, std::vector<EventId>> block_ends_;
  CriticalPath path_;
  std::int64_t now_;  // everything from here to the end is explained
  int waiting_row_block_ = -1;
  bool finished_at_first_phase_ = false;
};

}  // namespace

std::int64_t CriticalPath::exposed_communication_ns() const {
  return std::accumulate(exposed_by_step.begin(), exposed_by_step.end(), std::int64_t{0});
}

CriticalPath critical_path(const Dependencies& dependencies) {
  return Walk(dependencies).run();
}

CriticalPath critical_path(const Timeline& timeline) {
  return critical_path(Dependencies(timeline));
}

}  // namespace fusescope::analysis
