// check(): structure, events and tracks of a timeline; causality is in check_causality.cpp.

#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "timeline/checks.hpp"

namespace fusescope::timeline {
namespace {

std::string range_text(std::size_t size) {
  return "[0, " + std::to_string(size) + ")";
}

// A tile's row blocks follow each other in one expert, from the one that names it on.
std::string check_tiles(const Wiring& wiring) {
  for (std::size_t rank = 0; rank < wiring.tile_of_row_block.size(); ++rank) {
    const std::vector<std::int32_t>& tiles = wiring.tile_of_row_block[rank];
    const std::vector<std::int32_t> none;
    const auto& experts =
        rank < wiring.expert_of_row_block.size() ? wiring.expert_of_row_block[rank] : none;
    const std::string of_rank = "wiring: rank " + std::to_string(rank);
    if (tiles.size() != experts.size()) {
      return of_rank + " has tiles of " + std::to_string(tiles.size()) + " row blocks, expected " +
             std::to_string(experts.size());
    }
    for (std::size_t block = 0; block < tiles.size(); ++block) {
      const bool own = tiles[block] == static_cast<std::int32_t>(block);
      const bool follows =
          block > 0 && tiles[block] == tiles[block - 1] && experts[block] == experts[block - 1];
      if (!own && !follows) {
        return of_rank + " row block " + std::to_string(block) + " is in the tiles of row block " +
               std::to_string(tiles[block]) + ", expected its own or those of the one before it";
      }
    }
  }
  return "";
}

std::string check_wiring(const Wiring& wiring) {
  const auto ranks = static_cast<std::size_t>(std::max(wiring.ranks, 0));
  for (const auto& [what, size] :
       {std::pair<std::string_view, std::size_t>{"hit_row_block", wiring.hit_row_block.size()},
        {"expert_of_row_block", wiring.expert_of_row_block.size()},
        {"tile_of_row_block", wiring.tile_of_row_block.size()}}) {
    if (size != 0 && size != ranks) {
      return "wiring: " + std::string(what) + " has " + std::to_string(size) + " ranks, expected " +
             std::to_string(ranks);
    }
  }
  const std::size_t hits = ranks * static_cast<std::size_t>(std::max(wiring.tokens_per_rank, 0)) *
                           static_cast<std::size_t>(std::max(wiring.topk, 0));
  for (std::size_t rank = 0; rank < wiring.hit_row_block.size(); ++rank) {
    const auto& blocks = wiring.hit_row_block[rank];
    if (blocks.size() != hits) {
      return "wiring: rank " + std::to_string(rank) + " has " + std::to_string(blocks.size()) +
             " hits, expected " + std::to_string(hits);
    }
    const std::size_t row_blocks =
        rank < wiring.expert_of_row_block.size() ? wiring.expert_of_row_block[rank].size() : 0;
    for (std::size_t hit = 0; hit < hits; ++hit) {
      if (blocks[hit] < 0 || static_cast<std::size_t>(blocks[hit]) >= row_blocks) {
        return "wiring: rank " + std::to_string(rank) + " hit " + std::to_string(hit) +
               " is in row block " + std::to_string(blocks[hit]) + ", expected " +
               range_text(row_blocks);
      }
    }
  }
  return check_tiles(wiring);
}

std::string check_counters(const Timeline& timeline) {
  for (const Counter& counter : timeline.counters) {
    const std::string name =
        "counter \"" + counter.name + "\" of rank " + std::to_string(counter.rank);
    if (counter.time_ns.size() != counter.value.size()) {
      return name + " has " + std::to_string(counter.time_ns.size()) + " times and " +
             std::to_string(counter.value.size()) + " values";
    }
    if (!std::is_sorted(counter.time_ns.begin(), counter.time_ns.end())) {
      return name + " goes back in time";
    }
    if (counter.rank < 0 || counter.rank >= timeline.wiring.ranks) {
      return name + ": no such rank";
    }
  }
  return "";
}

bool belongs(Kind kind, Stage stage) {
  if (is_stream_phase(kind)) {
    return stage == Stage::stream;
  }
  switch (kind) {
    case Kind::pull:
    case Kind::scatter:
    case Kind::arrive:
    case Kind::gate_wait:
      return stage == Stage::dispatch_gemm;
    case Kind::mainloop:
    case Kind::epilogue:
      return stage == Stage::dispatch_gemm || stage == Stage::gemm_combine_push;
    case Kind::reduce_wait:
    case Kind::reduce:
      return stage == Stage::final_reduce;
    default:  // activation_wait, and all of a job
      return stage == Stage::gemm_combine_push;
  }
}

// One argument of an event: set where its kind has it and within its range, else -1.
struct Argument {
  std::string_view name;
  bool wanted;
  std::int64_t value;
  std::size_t limit;  // exclusive
};

std::array<Argument, 4> arguments_of(const Timeline& timeline, const Event& event) {
  const Wiring& wiring = timeline.wiring;
  const Track& track = timeline.tracks[event.track];
  const Arguments wanted = arguments(event.kind);
  const auto tokens = static_cast<std::size_t>(wiring.ranks) *
                      static_cast<std::size_t>(std::max(wiring.tokens_per_rank, 0));
  const auto rank = static_cast<std::size_t>(track.rank);
  const std::size_t row_blocks = rank < wiring.expert_of_row_block.size()
                                     ? wiring.expert_of_row_block[rank].size()
                                     : static_cast<std::size_t>(INT32_MAX);
  int index_limit = wiring.watermark_chunks;
  if (event.kind == Kind::barrier) {
    index_limit = 2;
  } else if (wanted.row_block && !wanted.token) {
    index_limit = track.stage == Stage::dispatch_gemm ? wiring.n_tiles_1 : wiring.n_tiles_2;
  } else if (wanted.token) {
    index_limit = static_cast<int>(tokens);  // position in job order
  }
  return {{{"token", wanted.token, event.token, tokens},
           {"row_block", wanted.row_block, event.row_block, row_blocks},
           {"index", wanted.index, event.index, static_cast<std::size_t>(std::max(index_limit, 0))},
           {"peer", wanted.peer, event.peer, static_cast<std::size_t>(wiring.ranks)}}};
}

std::string check_arguments(const Timeline& timeline, const Event& event) {
  for (const Argument& argument : arguments_of(timeline, event)) {
    if (!argument.wanted && argument.value != -1) {
      return where(timeline, event) + " has " + std::string(argument.name) + " " +
             std::to_string(argument.value) + ", which this kind does not carry";
    }
    if (argument.wanted &&
        (argument.value < 0 || static_cast<std::size_t>(argument.value) >= argument.limit)) {
      return where(timeline, event) + " has " + std::string(argument.name) + " " +
             std::to_string(argument.value) + ", expected " + range_text(argument.limit);
    }
  }
  return "";
}

// The peer of a row is the token's source rank. Where the sources have pushed the tokens, all pulls of all ranks take
// them from the rank's own memory.
std::string check_peer(const Timeline& timeline, const Event& event, bool tokens_pushed) {
  const bool of_source_rank = (event.kind == Kind::pull && !tokens_pushed) ||
                              event.kind == Kind::push || event.kind == Kind::elect;
  if (of_source_rank && event.token / timeline.wiring.tokens_per_rank != event.peer) {
    return where(timeline, event) + " of token " + std::to_string(event.token) + " has peer " +
           std::to_string(event.peer) + ", but the token's source rank is " +
           std::to_string(event.token / timeline.wiring.tokens_per_rank);
  }
  return "";
}

bool pulls_are_local(const Timeline& timeline) {
  return std::all_of(timeline.events.begin(), timeline.events.end(), [&](const Event& event) {
    return event.kind != Kind::pull || event.peer == timeline.tracks[event.track].rank;
  });
}

// Position of a phase in an iteration.
std::ptrdiff_t phase_position(const Event& event) {
  static constexpr std::array<std::pair<Kind, int>, 16> kOrder = {{{Kind::ids_exchange, -1},
                                                                   {Kind::schedule_build, -1},
                                                                   {Kind::barrier, 0},
                                                                   {Kind::copy_in, -1},
                                                                   {Kind::barrier, 1},
                                                                   {Kind::all_gather, -1},
                                                                   {Kind::scatter_rows, -1},
                                                                   {Kind::dispatch_gemm, -1},
                                                                   {Kind::gemm_1, -1},
                                                                   {Kind::activation, -1},
                                                                   {Kind::dispenser_reset, -1},
                                                                   {Kind::gemm_combine_push, -1},
                                                                   {Kind::gemm_2, -1},
                                                                   {Kind::combine, -1},
                                                                   {Kind::final_reduce, -1},
                                                                   {Kind::reduce_scatter, -1}}};
  return std::find(kOrder.begin(), kOrder.end(), std::pair(event.kind, int{event.index})) -
         kOrder.begin();
}

std::string check_nesting(const Dependencies& dependencies) {
  const Timeline& timeline = dependencies.timeline();
  for (Dependencies::EventId id = 0; id < timeline.events.size(); ++id) {
    const auto parent = dependencies.parent(id);
    if (parent != Dependencies::kNone &&
        timeline.events[parent].end_ns < timeline.events[id].end_ns) {
      return where(timeline, timeline.events[id]) + " overlaps the " +
             std::string(name(timeline.events[parent].kind)) + " from " +
             std::to_string(timeline.events[parent].begin_ns) + " to " +
             std::to_string(timeline.events[parent].end_ns) + " ns";
    }
  }
  return "";
}

std::string check_phases(const Dependencies& dependencies) {
  const Timeline& timeline = dependencies.timeline();
  for (std::uint32_t track = 0; track < timeline.tracks.size(); ++track) {
    const auto range = dependencies.events_of_track(track);
    if (timeline.tracks[track].stage != Stage::stream) {
      continue;
    }
    for (auto id = range.first; id + 1 < range.last; ++id) {
      const Event& first = timeline.events[id];
      const Event& second = timeline.events[id + 1];
      if (phase_position(first) >= phase_position(second)) {
        return where(timeline, second) + " comes after " + std::string(name(first.kind)) +
               ", expected before it";
      }
    }
  }
  return "";
}

std::string check_inside_kernels(const Dependencies& dependencies) {
  const Timeline& timeline = dependencies.timeline();
  const std::int64_t tolerance = tolerance_ns(timeline);
  for (std::uint32_t track = 0; track < timeline.tracks.size(); ++track) {
    const Track& what = timeline.tracks[track];
    if (what.stage == Stage::stream) {
      continue;
    }
    const Kind kind = phase_of(what.stage, timeline.meta.serial);
    const auto phase = dependencies.phase(what.rank, kind);
    const auto range = dependencies.events_of_track(track);
    if (phase == Dependencies::kNone) {
      if (range.first != range.last) {
        return where(timeline, timeline.events[range.first]) + ": rank " +
               std::to_string(what.rank) + " has no " + std::string(name(kind)) + " phase";
      }
      continue;
    }
    const Event& kernel = timeline.events[phase];
    const auto before = dependencies.previous_on_track(phase);
    // Blocks take the SMs that those of the kernel before leave, not before its first has begun.
    const bool overlaps = timeline.meta.programmatic && what.stage != Stage::dispatch_gemm &&
                          before != Dependencies::kNone;
    const std::int64_t from_ns = overlaps ? timeline.events[before].begin_ns : kernel.begin_ns;
    for (auto id = range.first; id < range.last; ++id) {
      const Event& event = timeline.events[id];
      if (event.begin_ns + tolerance < from_ns || event.end_ns > kernel.end_ns + tolerance) {
        return where(timeline, event) + " lies outside its " + std::string(name(kind)) +
               " phase from " + std::to_string(kernel.begin_ns) + " to " +
               std::to_string(kernel.end_ns) + " ns";
      }
    }
  }
  return "";
}

}  // namespace

std::int64_t tolerance_ns(const Timeline& timeline) {
  // The timer steps by 32 ns, and a warp may be held up between the two instructions.
  constexpr std::int64_t kRecordingDelayNs = 1000;
  constexpr double kMostBoundNs = 1e15;
  return static_cast<std::int64_t>(
             std::ceil(std::clamp(timeline.meta.clock_bound_ns, 0.0, kMostBoundNs))) +
         (timeline.meta.provenance == Provenance::measured ? kRecordingDelayNs : 0);
}

std::string where(const Timeline& timeline, const Event& event) {
  return describe(timeline.tracks[event.track]) + " at " + std::to_string(event.begin_ns) +
         " ns: " + std::string(name(event.kind));
}

std::string check_structure(const Timeline& timeline) {
  if (std::string fault = check_wiring(timeline.wiring); !fault.empty()) {
    return fault;
  }
  std::vector<std::tuple<int, Stage, Role, int, int>> seen;
  for (std::size_t i = 0; i < timeline.tracks.size(); ++i) {
    const Track& track = timeline.tracks[i];
    if (track.rank < 0 || track.rank >= timeline.wiring.ranks) {
      return "track " + std::to_string(i) + " is of rank " + std::to_string(track.rank) +
             ", expected " + range_text(static_cast<std::size_t>(timeline.wiring.ranks));
    }
    if ((track.stage == Stage::stream) != (track.role == Role::stream)) {
      return "track " + std::to_string(i) + " has stage " + std::string(name(track.stage)) +
             " but role " + std::string(name(track.role));
    }
    seen.emplace_back(track.rank, track.stage, track.role, track.block, track.lane);
  }
  std::sort(seen.begin(), seen.end());
  if (const auto twice = std::adjacent_find(seen.begin(), seen.end()); twice != seen.end()) {
    const auto& [rank, stage, role, block, lane] = *twice;
    return describe({rank, 0, stage, role, block, lane}) + " is there twice";
  }
  for (std::size_t i = 0; i < timeline.events.size(); ++i) {
    if (timeline.events[i].track >= timeline.tracks.size()) {
      return "event " + std::to_string(i) + " is on track " +
             std::to_string(timeline.events[i].track) + ", expected " +
             range_text(timeline.tracks.size());
    }
    if (i > 0 && before(timeline.events[i], timeline.events[i - 1])) {
      return where(timeline, timeline.events[i]) + " is out of order: events are not sorted";
    }
  }
  return check_counters(timeline);
}

std::string check_events(const Timeline& timeline) {
  constexpr std::int64_t kMostNs = INT64_MAX / 4;           // sums of a few times do not overflow
  constexpr std::int64_t kMostWallNs = 20'000'000'000'000;  // of 4096 SMs and of 2^18 tracks, too
  if (timeline.begin_ns < -kMostNs || timeline.end_ns > kMostNs ||
      timeline.end_ns - timeline.begin_ns > kMostWallNs) {
    return "the wall from " + std::to_string(timeline.begin_ns) + " to " +
           std::to_string(timeline.end_ns) + " ns is longer than any iteration";
  }
  const std::int64_t tolerance = tolerance_ns(timeline);
  const bool tokens_pushed = pulls_are_local(timeline);
  std::int64_t first = INT64_MAX;
  std::int64_t last = INT64_MIN;
  for (const Event& event : timeline.events) {
    if (event.end_ns < event.begin_ns) {
      return where(timeline, event) + " ends before it begins, at " + std::to_string(event.end_ns) +
             " ns";
    }
    if (event.begin_ns < timeline.begin_ns - tolerance ||
        event.end_ns > timeline.end_ns + tolerance) {
      return where(timeline, event) + " to " + std::to_string(event.end_ns) +
             " ns lies outside the wall from " + std::to_string(timeline.begin_ns) + " to " +
             std::to_string(timeline.end_ns) + " ns";
    }
    const Stage stage = timeline.tracks[event.track].stage;
    if (!belongs(event.kind, stage)) {
      return where(timeline, event) + " does not belong to this stage";
    }
    if (std::string fault = check_arguments(timeline, event); !fault.empty()) {
      return fault;
    }
    if (std::string fault = check_peer(timeline, event, tokens_pushed); !fault.empty()) {
      return fault;
    }
    if (stage == Stage::stream) {
      first = std::min(first, event.begin_ns);
      last = std::max(last, event.end_ns);
    }
  }
  if (first <= last && (first != timeline.begin_ns || last != timeline.end_ns)) {
    return "the wall is from " + std::to_string(timeline.begin_ns) + " to " +
           std::to_string(timeline.end_ns) + " ns, but the stream phases are from " +
           std::to_string(first) + " to " + std::to_string(last) + " ns";
  }
  return "";
}

std::string check_tracks(const Dependencies& dependencies) {
  for (const auto part : {check_nesting, check_phases, check_inside_kernels}) {
    if (std::string fault = part(dependencies); !fault.empty()) {
      return fault;
    }
  }
  return "";
}

std::string check(const Timeline& timeline) {
  for (const auto part : {check_structure, check_events}) {
    if (std::string fault = part(timeline); !fault.empty()) {
      return fault;
    }
  }
  const Dependencies dependencies(timeline);
  std::string fault = check_tracks(dependencies);
  return fault.empty() ? check_causality(dependencies) : fault;
}

}  // namespace fusescope::timeline
