#include "analysis/path_rules.hpp"

#include <algorithm>

namespace fusescope::analysis {
namespace {

using timeline::Dependencies;
using timeline::Event;
using timeline::Kind;
using timeline::Role;
using timeline::Stage;
using timeline::Track;

Step step_of_phase(Kind kind) {
  switch (kind) {
    case Kind::ids_exchange:
      return Step::ids_exchange;
    case Kind::schedule_build:
      return Step::schedule_build;
    case Kind::barrier:
      return Step::barrier;
    case Kind::copy_in:
      return Step::copy_in;
    case Kind::activation:
      return Step::activation;
    case Kind::final_reduce:
      return Step::final_reduce;
    case Kind::all_gather:
      return Step::all_gather;
    case Kind::scatter_rows:
      return Step::scatter_rows;
    case Kind::combine:
      return Step::combine;
    case Kind::reduce_scatter:
      return Step::reduce_scatter;
    // A kernel without block tracks cannot be looked into: it counts as its GEMM.
    case Kind::dispatch_gemm:
    case Kind::gemm_1:
      return Step::gemm_1;
    case Kind::gemm_combine_push:
    case Kind::gemm_2:
      return Step::gemm_2;
    default:
      return Step::launch_gap;
  }
}

}  // namespace

PathRules::PathRules(const Dependencies& dependencies) : dependencies_(&dependencies) {
  const timeline::Timeline& timeline = dependencies.timeline();
  int ranks = timeline.wiring.ranks;
  for (const Track& track : timeline.tracks) {
    ranks = std::max(ranks, track.rank + 1);
  }
  marks_.resize(static_cast<std::size_t>(ranks));
  for (Dependencies::EventId id = 0; id < timeline.events.size(); ++id) {
    const Event& event = timeline.events[id];
    const Track& track = timeline.tracks[event.track];
    Marks& marks = marks_[static_cast<std::size_t>(track.rank)];
    if (event.kind == Kind::mainloop && track.stage == Stage::dispatch_gemm) {
      marks.head_end_ns = std::min(marks.head_end_ns, event.begin_ns);
    } else if (track.stage == Stage::gemm_combine_push) {
      if (event.kind == Kind::epilogue &&
          (marks.last_tile == Dependencies::kNone || event.end_ns > marks.last_tile_end_ns)) {
        marks.last_tile = id;
        marks.last_tile_end_ns = event.end_ns;
      }
      marks.all_hands |= event.kind == Kind::sum && track.role == Role::compute;
    }
  }
}

bool PathRules::needs(int rank, int row_block, int token) const {
  const timeline::Wiring& wiring = dependencies_->timeline().wiring;
  if (row_block < 0 || token < 0 || static_cast<std::size_t>(rank) >= wiring.hit_row_block.size()) {
    return true;  // nothing is known against it
  }
  const std::vector<std::int32_t>& hits = wiring.hit_row_block[static_cast<std::size_t>(rank)];
  const auto first = static_cast<std::size_t>(token) * static_cast<std::size_t>(wiring.topk);
  const auto last = first + static_cast<std::size_t>(wiring.topk);
  if (last > hits.size()) {
    return true;
  }
  const int last_row_block = wiring.last_of_tile(rank, row_block);
  return std::any_of(hits.begin() + static_cast<std::ptrdiff_t>(first),
                     hits.begin() + static_cast<std::ptrdiff_t>(last),
                     [last_row_block](std::int32_t hit) { return hit <= last_row_block; });
}

PathRules::Pieces PathRules::classify(Dependencies::EventId id, std::int64_t begin_ns,
                                      std::int64_t end_ns, bool gap, int waiting_row_block) const {
  const Event& event = dependencies_->event(id);
  const Track& track = dependencies_->track_of(id);
  const auto whole = [&](Step step) { return Pieces{{{begin_ns, end_ns, step}, {}}, 1}; };
  const auto split = [&](std::int64_t at, Step before, Step after) {
    if (at <= begin_ns) {
      return whole(after);
    }
    if (at >= end_ns) {
      return whole(before);
    }
    return Pieces{{{begin_ns, at, before}, {at, end_ns, after}}, 2};
  };

  const auto job = [&] {
    return split(last_tile_end(track.rank), Step::combine_work, Step::push_drain);
  };
  const Step gemm = track.stage == Stage::dispatch_gemm ? Step::gemm_1 : Step::gemm_2;

  switch (event.kind) {
    case Kind::pull:
    case Kind::scatter:
    case Kind::arrive:
      return !needs(track.rank, waiting_row_block, event.token)
                 ? whole(Step::dispatch_order)
                 : split(head_end(track.rank), Step::dispatch_head, Step::dispatch_bandwidth);
    case Kind::gate_wait:
      return gap ? whole(gemm)
                 : split(head_end(track.rank), Step::dispatch_head, Step::dispatch_bandwidth);
    case Kind::activation_wait:  // what is left of it after kernel 1's last tile
      return whole(Step::launch_gap);
    case Kind::mainloop:
    case Kind::epilogue:
      return whole(gemm);
    case Kind::ready_wait:
      return gap ? job() : whole(Step::combine_wait);
    case Kind::claim:
    case Kind::sum:
    case Kind::push:
    case Kind::elect:
      return job();
    case Kind::watermark:
      return whole(Step::watermark);
    case Kind::reduce_wait:
      return whole(gap ? Step::final_reduce : Step::watermark);
    case Kind::reduce:
      return whole(Step::final_reduce);
    default:
      return whole(gap ? Step::launch_gap : step_of_phase(event.kind));
  }
}

bool exposes(Step step, Kind kind, bool gap) {
  if (step == Step::push_drain) {
    return !gap && (kind == Kind::push || kind == Kind::elect);
  }
  return is_communication(step);
}

}  // namespace fusescope::analysis
