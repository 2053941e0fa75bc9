// For every closed gate: the token whose arrival opened it, and what that token was doing
// meanwhile.

#include <algorithm>
#include <tuple>

#include "analysis/accounting.hpp"

namespace fusescope::analysis {
namespace {

using timeline::Dependencies;
using timeline::Event;
using timeline::Kind;
using timeline::Timeline;
using timeline::Track;
using EventId = Dependencies::EventId;
constexpr EventId kNone = Dependencies::kNone;

int expert_of(const Timeline& timeline, int rank, int row_block) {
  const auto& experts = timeline.wiring.expert_of_row_block;
  const auto r = static_cast<std::size_t>(rank);
  const auto b = static_cast<std::size_t>(row_block);
  return r < experts.size() && row_block >= 0 && b < experts[r].size() ? experts[r][b] : -1;
}

GateBlame blame(const Dependencies& dependencies, const Event& wait, const Track& track) {
  GateBlame gate;
  gate.rank = track.rank;
  gate.block = track.block;
  gate.row_block = dependencies.last_to_open(track.rank, wait.row_block);
  gate.expert = expert_of(dependencies.timeline(), track.rank, gate.row_block);
  gate.begin_ns = wait.begin_ns;
  gate.wait_ns = wait.end_ns - wait.begin_ns;

  // Times that cut the wait, each at or after the one before: issued, in shared memory, counted.
  std::int64_t issued = wait.end_ns;
  std::int64_t pulled = wait.end_ns;
  std::int64_t counted = wait.end_ns;
  const EventId arrive = dependencies.opening_arrive(track.rank, gate.row_block);
  if (arrive != kNone) {
    const auto clip = [&](std::int64_t at) { return std::clamp(at, wait.begin_ns, wait.end_ns); };
    gate.last_token = dependencies.event(arrive).token;
    counted = clip(dependencies.event(arrive).end_ns);
    issued = pulled = clip(dependencies.event(arrive).begin_ns);
    const EventId pull = dependencies.of_token(track.rank, Kind::pull, gate.last_token);
    if (pull != kNone) {
      gate.source_rank = dependencies.event(pull).peer;
      pulled = std::min(clip(dependencies.event(pull).end_ns), counted);
      issued = std::min(clip(dependencies.event(pull).begin_ns), pulled);
    }
  }
  gate.pull_ns = pulled - issued;
  gate.scatter_ns = counted - pulled;
  gate.ns_by_blame = {issued - wait.begin_ns, counted - issued, wait.end_ns - counted};
  gate.blame = issued > wait.begin_ns    ? Blame::not_yet_issued
               : counted > wait.begin_ns ? Blame::in_flight
                                         : Blame::landed_not_seen;
  return gate;
}

}  // namespace

std::vector<GateBlame> blame_gates(const Dependencies& dependencies) {
  const Timeline& timeline = dependencies.timeline();
  std::vector<GateBlame> gates;
  for (const Event& event : timeline.events) {
    if (event.kind == Kind::gate_wait && event.end_ns > event.begin_ns) {
      gates.push_back(blame(dependencies, event, timeline.tracks[event.track]));
    }
  }
  std::sort(gates.begin(), gates.end(), [](const GateBlame& a, const GateBlame& b) {
    return std::tuple(-a.wait_ns, a.rank, a.begin_ns, a.block) <
           std::tuple(-b.wait_ns, b.rank, b.begin_ns, b.block);
  });
  return gates;
}

}  // namespace fusescope::analysis
