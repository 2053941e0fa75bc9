// The walk back along the binding predecessors. What a stretch of time counts as is path_rules' business.

#include "analysis/critical_path.hpp"

#include <algorithm>
#include <numeric>
#include <unordered_map>

#include "analysis/block_order.hpp"
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
  return kind == Kind::gate_wait || kind == Kind::activation_wait || kind == Kind::ready_wait ||
         kind == Kind::reduce_wait;
}

bool is_dispatch(Step step) {
  return step == Step::dispatch_head || step == Step::dispatch_order ||
         step == Step::dispatch_bandwidth;
}

class Walk {
 public:
  explicit Walk(const Dependencies& dependencies)
      : dependencies_(dependencies),
        timeline_(dependencies.timeline()),
        rules_(dependencies),
        order_(dependencies),
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
      // Before the first phase of a rank that started later than another there is nothing to find.
      path_.unexplained_ns = at_first_phase_ ? 0 : now_ - timeline_.begin_ns;
      add(timeline_.begin_ns, Step::launch_gap, kNone, false, -1);
    }
    std::reverse(path_.segments.begin(), path_.segments.end());
    sum_up();
    return std::move(path_);
  }

 private:
  // Where the walk stands: it has come to this event, at the end or (`at_begin`) at the begin of it.
  struct Goal {
    EventId event = kNone;
    bool at_begin = false;
  };

  const Event& event(EventId id) const { return dependencies_.event(id); }
  std::int16_t rank_of(EventId id) const {
    return static_cast<std::int16_t>(dependencies_.rank_of(id));
  }

  Goal start() const {
    EventId last = kNone;
    for (EventId id = 0; id < timeline_.events.size(); ++id) {
      if (dependencies_.track_of(id).stage == Stage::stream &&
          (last == kNone || event(id).end_ns > event(last).end_ns)) {
        last = id;
      }
    }
    return {last, false};
  }

  Goal step(const Goal& goal) {
    const EventId id = goal.event;
    const bool stream = dependencies_.track_of(id).stage == Stage::stream;
    if (!goal.at_begin) {
      if (visited_[id]) {
        return {};
      }
      visited_[id] = true;
      add(event(id).end_ns, Step::launch_gap, kNone, false, rank_of(id));
      if (const Goal next = stream ? into_phase(id) : to_cause(id); next.event != kNone) {
        return next;
      }
      give(event(id).begin_ns, id, false);
      if (const Goal next = to_missing_hands(id); next.event != kNone) {
        return next;
      }
    } else {
      now_ = std::max(std::min(now_, event(id).begin_ns), timeline_.begin_ns);
    }
    return stream ? before_phase(id) : before_on_track(id);
  }

  // What a phase waited for inside: its blocks, or the last rank to enter.
  Goal into_phase(EventId id) {
    const EventId cause = dependencies_.cause(id);
    if (cause == kNone || visited_[cause]) {
      return {};
    }
    if (is_collective(event(id).kind)) {
      give(std::max(event(cause).begin_ns, event(id).begin_ns), id, false);
      visited_[cause] = true;
      return {cause, true};
    }
    return {cause, false};  // its end to the phase's end becomes a gap
  }

  // What a wait waited for, if that came after the wait began.
  Goal to_cause(EventId id) {
    if (const EventId next = dependencies_.issued_first(id);
        event(id).kind == Kind::push && next != kNone) {
      give(event(next).begin_ns, id, false);
      return {next, true};
    }
    if (!is_wait(event(id).kind)) {
      return {};
    }
    waiting_ = event(id).kind == Kind::gate_wait ? id : kNone;
    const EventId cause = dependencies_.cause(id);
    if (cause == kNone) {
      ++path_.causes_missing;
      return {};
    }
    if (visited_[cause] || event(cause).end_ns <= event(id).begin_ns) {
      return {};
    }
    give(event(cause).end_ns, id, false);
    return {cause, false};
  }

  // All hands: a job that was taken while tiles still ran was not taken earlier because compute blocks
  // were not there yet. What the one that joined last was doing then, in a mainloop or an epilogue.
  Goal to_missing_hands(EventId id) {
    const int rank = dependencies_.rank_of(id);
    if (event(id).kind != Kind::claim || !rules_.all_hands(rank) ||
        event(id).begin_ns >= rules_.last_tile_end(rank)) {
      return {};
    }
    const EventId doing = order_.at_its_tiles(event(rules_.last_tile(rank)).track, now_);
    return doing == kNone || visited_[doing] ? Goal{} : Goal{doing, false};
  }

  Goal before_phase(EventId id) {
    const EventId previous = dependencies_.previous_on_track(id);
    at_first_phase_ = previous == kNone;
    if (previous != kNone) {
      give(event(previous).end_ns, id, true);
    }
    return {previous, false};
  }

  Goal before_on_track(EventId id) {
    EventId previous = dependencies_.previous_on_track(id);
    if (previous == kNone) {
      previous = order_.freed_the_sm(id);
      const EventId left = timeline_.meta.programmatic ? order_.left_the_sm(id) : kNone;
      if (left != kNone && !visited_[left] &&
          (previous == kNone || event(left).end_ns >= event(previous).end_ns)) {
        add(event(left).end_ns, Step::launch_gap, kNone, false, rank_of(id));
        return {left, false};
      }
    }
    // The push may have been visited: its end held up another event than its begin does. It began earlier, so
    // that the walk ends all the same.
    if (const EventId push = dependencies_.held_by(id);
        push != kNone && previous != kNone && is_held_by(id, push, previous)) {
      give(event(push).begin_ns, push, false);
      return {push, true};
    }
    if (const EventId sum = made_room(id, previous); sum != kNone) {
      give(event(sum).begin_ns, sum, false);
      return {sum, true};
    }
    if (previous != kNone && !visited_[previous]) {
      give_to_issue(id, event(previous).end_ns);
      give(event(previous).end_ns, id, true);
      return {previous, false};
    }
    const Track& track = dependencies_.track_of(id);
    const EventId phase =
        dependencies_.phase(track.rank, timeline::phase_of(track.stage, timeline_.meta.serial));
    if (phase != kNone) {
      add(event(phase).begin_ns, Step::launch_gap, kNone, false, rank_of(id));
    }
    return {phase, true};
  }

  // When the copy engine had read a row buffer is not recorded, only when the push was issued and when it was
  // complete. What came before ended later than most of the time since the issue has passed: then that, and
  // not the buffer, is what the event waited for.
  bool is_held_by(EventId id, EventId push, EventId previous) const {
    const std::int64_t waited = event(id).begin_ns - event(previous).end_ns;
    const std::int64_t since_issue = event(id).begin_ns - event(push).begin_ns;
    return waited > 0 && since_issue > 0 && 2 * waited >= since_issue;
  }

  // A front goes on to its next job when its last one's rows are on their way: when the sums have made room for
  // them. The sum that did so, if the front waited for it after what it did before; else kNone.
  EventId made_room(EventId id, EventId previous) const {
    if (event(id).kind != Kind::ready_wait || previous == kNone) {
      return kNone;
    }
    const EventId own = dependencies_.of_token(rank_of(id), Kind::sum, event(id).token);
    if (own == kNone || event(own).track == event(id).track) {
      return kNone;  // the same threads sum
    }
    const EventId sum = order_.last_begun_before(event(own).track, event(id).begin_ns);
    const bool waited = sum != kNone && sum != own && event(sum).kind == Kind::sum &&
                        event(sum).begin_ns < event(id).begin_ns &&
                        event(sum).end_ns > event(previous).end_ns &&
                        event(previous).end_ns < event(id).begin_ns;
    return waited ? sum : kNone;
  }

  // A warpgroup's second sum waits until its first push is issued: until its threads go on, with the claim
  // of the next job, or with the sum where there is none.
  void give_to_issue(EventId sum, std::int64_t previous_end_ns) {
    const EventId push = dependencies_.issued_first(sum);
    if (event(sum).kind != Kind::sum || push == kNone) {
      return;
    }
    const EventId claim = order_.last_begun_before(event(sum).track, event(sum).begin_ns);
    if (claim != kNone && event(claim).kind == Kind::claim &&
        event(claim).begin_ns >= event(push).begin_ns) {
      give(event(claim).begin_ns, sum, true);
    }
    give(std::max(previous_end_ns, event(push).begin_ns), push, false);
  }

  // Gives [begin, now) to an event, or to the idle time before it.
  void give(std::int64_t begin_ns, EventId id, bool gap) {
    const std::int64_t begin = std::max(begin_ns, timeline_.begin_ns);
    if (begin >= now_) {
      return;
    }
    const PathRules::Pieces pieces = rules_.classify(id, begin, now_, gap, waiting_row_block());
    for (int i = pieces.count - 1; i >= 0; --i) {
      const PathRules::Piece& piece = pieces.piece[i];
      const bool exposed = exposes(piece.step, event(id).kind, gap);
      if (exposed && is_dispatch(piece.step)) {
        add_dispatch(piece, gap ? kNone : id, rank_of(id));
      } else {
        add(piece.begin_ns, piece.step, gap ? kNone : id, exposed, rank_of(id));
      }
    }
  }

  // What the dispatch does while the waiting block computes is hidden behind that block's tiles.
  void add_dispatch(const PathRules::Piece& piece, EventId id, std::int16_t rank) {
    EventId other =
        waiting_ == kNone ? kNone : order_.last_begun_before(event(waiting_).track, now_);
    for (; other != kNone; other = dependencies_.previous_on_track(other)) {
      const Event& tile = event(other);
      if (tile.end_ns <= piece.begin_ns) {
        break;
      }
      if (tile.kind == Kind::mainloop || tile.kind == Kind::epilogue) {
        add(std::max(tile.end_ns, piece.begin_ns), piece.step, id, true, rank);
        add(std::max(tile.begin_ns, piece.begin_ns), piece.step, id, false, rank);
      }
    }
    add(piece.begin_ns, piece.step, id, true, rank);
  }

  int waiting_row_block() const {
    return waiting_ == kNone
               ? -1
               : dependencies_.last_to_open(rank_of(waiting_), event(waiting_).row_block);
  }

  // The next segment: [begin, now), if that is any time at all.
  void add(std::int64_t begin_ns, Step step, EventId id, bool exposed, std::int16_t rank) {
    const std::int64_t begin = std::max(begin_ns, timeline_.begin_ns);
    if (begin < now_) {
      path_.segments.push_back(
          {begin, now_, step, exposed, rank, is_dispatch(step) ? waiting_row_block() : -1, id});
      now_ = begin;
    }
  }

  void sum_up() {
    std::unordered_map<int, std::int64_t> tokens;
    for (const Segment& segment : path_.segments) {
      const std::int64_t ns = segment.end_ns - segment.begin_ns;
      const auto at = static_cast<std::size_t>(segment.step);
      path_.by_step[at] += ns;
      path_.exposed_by_step[at] += segment.exposed ? ns : 0;
      if (segment.rank >= 0 && static_cast<std::size_t>(segment.rank) < path_.by_rank.size()) {
        path_.by_rank[static_cast<std::size_t>(segment.rank)] += ns;
      }
      if (segment.event == kNone) {
        continue;
      }
      const Event& what = event(segment.event);
      path_.by_kind[static_cast<std::size_t>(what.kind)] += ns;
      if (what.token >= 0) {
        tokens[what.token] += ns;
      }
      if (what.kind == Kind::pull && what.peer >= 0 &&
          static_cast<std::size_t>(what.peer) < path_.by_source_rank.size()) {
        path_.by_source_rank[static_cast<std::size_t>(what.peer)] += ns;
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
  BlockOrder order_;
  std::vector<bool> visited_;
  CriticalPath path_;
  std::int64_t now_;         // everything from here to the end is explained
  EventId waiting_ = kNone;  // the gate wait that led to a communication lane
  bool at_first_phase_ = false;
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
