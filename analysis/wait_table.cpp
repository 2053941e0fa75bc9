#include "analysis/wait_table.hpp"

#include <algorithm>
#include <map>
#include <tuple>

namespace fusescope::analysis {
namespace {

using timeline::Dependencies;
using timeline::Event;
using timeline::Kind;
using timeline::Timeline;
using timeline::Track;
using EventId = Dependencies::EventId;
constexpr EventId kNone = Dependencies::kNone;

// One wait, cut at two times: when what was awaited was issued, and when it was there.
struct Cut {
  int source_rank = -1;
  std::array<std::int64_t, kBlames> ns_by_blame{};
};

Cut cut(const Event& wait, int source_rank, std::int64_t issued_ns, std::int64_t landed_ns) {
  const std::int64_t landed = std::clamp(landed_ns, wait.begin_ns, wait.end_ns);
  const std::int64_t issued = std::clamp(issued_ns, wait.begin_ns, landed);
  return {source_rank, {issued - wait.begin_ns, landed - issued, wait.end_ns - landed}};
}

Cut cut(const Dependencies& dependencies, EventId id) {
  const Event& wait = dependencies.event(id);
  const EventId cause = dependencies.cause(id);
  if (cause == kNone) {
    return cut(wait, -1, wait.end_ns, wait.end_ns);
  }
  const Event& what = dependencies.event(cause);
  const int rank = dependencies.rank_of(cause);
  if (timeline::is_stream_phase(wait.kind)) {
    return cut(wait, rank, what.begin_ns, what.begin_ns);  // it has no flight of its own
  }
  std::int64_t issued = what.begin_ns;
  if (what.kind == Kind::epilogue) {
    const EventId mainloop = dependencies.previous_on_track(cause);
    if (mainloop != kNone && dependencies.event(mainloop).kind == Kind::mainloop) {
      issued = dependencies.event(mainloop).begin_ns;
    }
  }
  return cut(wait, rank, issued, what.end_ns);
}

// What a sum waited for a row buffer: from when its own lane was done with what comes before until the pusher
// had counted the push two jobs before, or had given its buffer back. Nothing where it did not come to that.
struct BufferWait {
  std::int64_t wait_ns = 0;
  Cut pieces;
};

BufferWait buffer_wait(const Dependencies& dependencies, EventId sum) {
  const EventId counted = dependencies.previous_on_track(sum);
  if (counted == kNone) {
    return {};
  }
  if (const EventId push = dependencies.held_by(sum); push != kNone) {
    Event wait = dependencies.event(sum);
    wait.end_ns = wait.begin_ns;
    wait.begin_ns = std::min(dependencies.event(counted).end_ns, wait.end_ns);
    const Event& what = dependencies.event(push);
    return {wait.end_ns - wait.begin_ns, cut(wait, what.peer, what.begin_ns, wait.end_ns)};
  }
  if (dependencies.event(counted).track == dependencies.event(sum).track) {
    return {};
  }
  const Kind kind = dependencies.event(counted).kind;
  if (kind != Kind::push && kind != Kind::elect && kind != Kind::watermark) {
    return {};
  }
  const std::uint32_t track = dependencies.event(sum).track;
  EventId before = sum;
  while (before > dependencies.events_of_track(track).first &&
         dependencies.event(before - 1).kind == Kind::claim) {
    --before;
  }
  Event wait = dependencies.event(sum);
  wait.begin_ns = before > dependencies.events_of_track(track).first
                      ? dependencies.event(before - 1).end_ns
                      : wait.begin_ns;
  wait.end_ns = dependencies.event(counted).end_ns;
  EventId push = counted;
  while (push != kNone && dependencies.event(push).kind != Kind::push) {
    push = dependencies.previous_on_track(push);
  }
  if (push == kNone || wait.begin_ns >= wait.end_ns) {
    return {};
  }
  const Event& what = dependencies.event(push);
  return {wait.end_ns - wait.begin_ns, cut(wait, what.peer, what.begin_ns, what.end_ns)};
}

bool is_tabulated(Kind kind) {
  return kind == Kind::ready_wait || kind == Kind::reduce_wait || kind == Kind::barrier ||
         kind == Kind::ids_exchange || kind == Kind::all_gather || kind == Kind::reduce_scatter;
}

template <typename Total>
void add(Total& total, std::int64_t wait_ns, const std::array<std::int64_t, kBlames>& ns_by_blame) {
  ++total.waits;
  total.wait_ns += wait_ns;
  for (std::size_t blame = 0; blame < kBlames; ++blame) {
    total.ns_by_blame[blame] += ns_by_blame[blame];
  }
}

// (rank or -1, id) -> total, as a list with the longest first.
class Totals {
 public:
  void add_gate(int rank, int id, const GateBlame& gate) {
    WaitTotal& total = totals_[{rank, id}];
    total.rank = rank;
    total.id = id;
    add(total, gate.wait_ns, gate.ns_by_blame);
  }
  std::vector<WaitTotal> sorted() const {
    std::vector<WaitTotal> list;
    list.reserve(totals_.size());
    for (const auto& [key, total] : totals_) {
      list.push_back(total);
    }
    std::stable_sort(list.begin(), list.end(),
                     [](const WaitTotal& a, const WaitTotal& b) { return a.wait_ns > b.wait_ns; });
    return list;
  }

 private:
  std::map<std::pair<int, int>, WaitTotal> totals_;
};

}  // namespace

WaitTable tabulate_waits(const Dependencies& dependencies, const std::vector<GateBlame>& gates) {
  const Timeline& timeline = dependencies.timeline();
  std::map<std::tuple<int, timeline::Role, Kind, int>, WaitEdge> edges;
  const auto edge = [&](int rank, timeline::Role role, Kind kind, int source) -> WaitEdge& {
    WaitEdge& found = edges[{rank, role, kind, source}];
    found.waiting_rank = rank;
    found.role = role;
    found.kind = kind;
    found.source_rank = source;
    return found;
  };

  Totals row_blocks;
  Totals experts;
  Totals source_ranks;
  for (const GateBlame& gate : gates) {
    add(edge(gate.rank, timeline::Role::compute, Kind::gate_wait, gate.source_rank), gate.wait_ns,
        gate.ns_by_blame);
    row_blocks.add_gate(gate.rank, gate.row_block, gate);
    experts.add_gate(-1, gate.expert, gate);
    source_ranks.add_gate(-1, gate.source_rank, gate);
  }
  for (EventId id = 0; id < timeline.events.size(); ++id) {
    const Event& wait = timeline.events[id];
    if (wait.kind == Kind::sum) {
      const Track& track = dependencies.track_of(id);
      if (const BufferWait buffer = buffer_wait(dependencies, id); buffer.wait_ns > 0) {
        add(edge(track.rank, track.role, Kind::push, buffer.pieces.source_rank), buffer.wait_ns,
            buffer.pieces.ns_by_blame);
      }
      continue;
    }
    if (!is_tabulated(wait.kind) || wait.end_ns <= wait.begin_ns) {
      continue;
    }
    const Track& track = dependencies.track_of(id);
    const Cut pieces = cut(dependencies, id);
    // The last rank to enter a collective phase waits for nobody.
    const bool last = timeline::is_stream_phase(wait.kind) && pieces.source_rank < 0;
    add(edge(track.rank, track.role, wait.kind, last ? track.rank : pieces.source_rank),
        wait.end_ns - wait.begin_ns,
        last ? std::array<std::int64_t, kBlames>{0, 0, wait.end_ns - wait.begin_ns}
             : pieces.ns_by_blame);
  }

  WaitTable table;
  for (const auto& [key, found] : edges) {
    table.edges.push_back(found);
  }
  std::stable_sort(table.edges.begin(), table.edges.end(),
                   [](const WaitEdge& a, const WaitEdge& b) { return a.wait_ns > b.wait_ns; });
  table.row_blocks = row_blocks.sorted();
  table.experts = experts.sorted();
  table.source_ranks = source_ranks.sorted();
  return table;
}

}  // namespace fusescope::analysis
