// SMs x wall, area by area: stream phases without block tracks take all SMs, kernels with block
// tracks are split by what shares an SM.

#include "analysis/accounting.hpp"

#include <algorithm>
#include <iterator>
#include <map>
#include <utility>

namespace fusescope::analysis {
namespace {

using timeline::Dependencies;
using timeline::Event;
using timeline::Kind;
using timeline::Role;
using timeline::Stage;
using timeline::Timeline;
using timeline::Track;

Use use_of(Kind kind) {
  switch (kind) {
    case Kind::mainloop:
    case Kind::epilogue:
    case Kind::gemm_1:
    case Kind::gemm_2:
      return Use::compute;
    case Kind::pull:
    case Kind::scatter:
    case Kind::arrive:
    case Kind::all_gather:
    case Kind::scatter_rows:
    case Kind::reduce_scatter:
      return Use::communication;
    case Kind::claim:
    case Kind::sum:
    case Kind::push:
    case Kind::elect:
    case Kind::watermark:
    case Kind::combine:
      return Use::combine;
    case Kind::reduce:
    case Kind::final_reduce:
      return Use::reduce;
    case Kind::gate_wait:
      return Use::gate_wait;
    case Kind::activation_wait:
      return Use::idle;
    case Kind::ready_wait:
      return Use::ready_wait;
    case Kind::reduce_wait:
      return Use::watermark_wait;
    default:
      return Use::other_phase;
  }
}

struct Window {
  std::int64_t begin_ns = 0;
  std::int64_t end_ns = 0;
  std::int64_t length() const { return end_ns - begin_ns; }
};

using ByUse = std::array<std::int64_t, kUses>;
using ByRole = std::array<ByUse, timeline::kRoles>;

std::int64_t& at(ByUse& by_use, Use use) {
  return by_use[static_cast<std::size_t>(use)];
}

// A block of a kernel: its lanes, and from when to when it holds an SM.
struct Block {
  Role role = Role::stream;
  Window held;
  std::vector<std::uint32_t> tracks;
};

// What runs on one SM during a kernel, or during several that overlap.
struct Sm {
  Role role = Role::stream;  // of its first block: whose the idle time is
  std::int64_t free_from = 0;
  std::vector<std::uint32_t> tracks;
};

std::vector<Block> blocks_of(const Dependencies& dependencies, int rank, Stage stage,
                             const std::vector<std::uint32_t>& tracks) {
  const Timeline& timeline = dependencies.timeline();
  std::map<std::pair<Role, int>, Block> by_number;  // roles may count their blocks from 0 each
  for (const std::uint32_t id : tracks) {
    const Track& track = timeline.tracks[id];
    const Dependencies::Range range = dependencies.events_of_track(id);
    if (track.rank != rank || track.stage != stage || range.first == range.last) {
      continue;
    }
    const Window held{timeline.events[range.first].begin_ns,
                      timeline.events[range.last - 1].end_ns};
    const auto [found, fresh] =
        by_number.try_emplace({track.role, track.block}, Block{track.role, held, {}});
    Block& block = found->second;
    block.tracks.push_back(id);
    if (!fresh) {
      block.held = {std::min(block.held.begin_ns, held.begin_ns),
                    std::max(block.held.end_ns, held.end_ns)};
    }
  }
  std::vector<Block> blocks;
  blocks.reserve(by_number.size());
  for (auto& [number, block] : by_number) {
    blocks.push_back(std::move(block));
  }
  return blocks;
}

// One SM per block while there are enough; then the SM that was free longest; when none is free the
// one that will be free first is shared.
std::vector<Sm> place(std::vector<Block> blocks, std::size_t sms) {
  std::stable_sort(blocks.begin(), blocks.end(), [](const Block& a, const Block& b) {
    return a.held.begin_ns < b.held.begin_ns;
  });
  std::vector<Sm> placed;
  for (Block& block : blocks) {
    const auto first_free =
        std::min_element(placed.begin(), placed.end(),
                         [](const Sm& a, const Sm& b) { return a.free_from < b.free_from; });
    const bool free = first_free != placed.end() && first_free->free_from <= block.held.begin_ns;
    if (placed.size() < sms && !free) {
      placed.push_back({block.role, block.held.end_ns, std::move(block.tracks)});
      continue;
    }
    first_free->free_from = std::max(first_free->free_from, block.held.end_ns);
    first_free->tracks.insert(first_free->tracks.end(), block.tracks.begin(), block.tracks.end());
  }
  return placed;
}

// Splits a window of one SM by what its tracks do, and by whose blocks do it.
class Merge {
 public:
  explicit Merge(const Dependencies& dependencies) : dependencies_(dependencies) {}

  ByRole split(const Sm& sm, const Window& window) {
    edges_.clear();
    for (const std::uint32_t track : sm.tracks) {
      const Dependencies::Range range = dependencies_.events_of_track(track);
      const Role role = dependencies_.timeline().tracks[track].role;
      for (std::uint32_t id = range.first; id < range.last; ++id) {
        const Event& event = dependencies_.event(id);
        const std::int64_t begin = std::max(event.begin_ns, window.begin_ns);
        const std::int64_t end = std::min(event.end_ns, window.end_ns);
        if (begin < end) {
          edges_.push_back({begin, use_of(event.kind), role, 1});
          edges_.push_back({end, use_of(event.kind), role, -1});
        }
      }
    }
    std::sort(edges_.begin(), edges_.end(),
              [](const Edge& a, const Edge& b) { return a.at_ns < b.at_ns; });
    ByRole by_role{};
    std::array<int, kUses> running{};
    std::array<Role, kUses> whose;  // of each use the role that began it last
    whose.fill(sm.role);
    std::int64_t now = window.begin_ns;
    for (const Edge& edge : edges_) {
      const auto use = static_cast<std::size_t>(strongest(running));
      by_role[static_cast<std::size_t>(whose[use])][use] += edge.at_ns - now;
      now = edge.at_ns;
      const auto changed = static_cast<std::size_t>(edge.use);
      running[changed] += edge.change;
      if (edge.change > 0 && edge.use != Use::idle) {
        whose[changed] = edge.role;
      }
    }
    at(by_role[static_cast<std::size_t>(sm.role)], Use::idle) += window.end_ns - now;
    return by_role;
  }

 private:
  struct Edge {
    std::int64_t at_ns;
    Use use;
    Role role;
    int change;
  };

  // Use lists work first, then waits, then idle.
  static Use strongest(const std::array<int, kUses>& running) {
    const auto found =
        std::find_if(running.begin(), running.end(), [](int count) { return count > 0; });
    return found == running.end() ? Use::idle : static_cast<Use>(found - running.begin());
  }

  const Dependencies& dependencies_;
  std::vector<Edge> edges_;
};

class RankArea {
 public:
  RankArea(const Dependencies& dependencies, int rank, const std::vector<std::uint32_t>& tracks)
      : dependencies_(dependencies),
        timeline_(dependencies.timeline()),
        tracks_(tracks),
        merge_(dependencies) {
    result_.rank = rank;
    result_.area_ns = timeline_.meta.sms * timeline_.wall_ns();
  }

  RankAccounting account() {
    std::int64_t now = timeline_.begin_ns;
    const std::vector<Event> all = phases();
    for (const Event& phase : all) {
      if (timeline_.meta.programmatic && phase.kind == Kind::dispatch_gemm) {
        // Everything from here on is one kernel after the other on SMs that the one before leaves.
        const Window window{std::max(phase.begin_ns, now),
                            std::min(all.back().end_ns, timeline_.end_ns)};
        if (window.length() > 0) {
          give(Role::stream, Use::idle, timeline_.meta.sms * (window.begin_ns - now));
          add_overlapping_kernels(window);
          now = window.end_ns;
        }
        break;
      }
      const Window window{std::max(phase.begin_ns, now), std::min(phase.end_ns, timeline_.end_ns)};
      if (window.length() <= 0) {
        continue;
      }
      give(Role::stream, Use::idle, timeline_.meta.sms * (window.begin_ns - now));
      add_phase(phase, window);
      now = window.end_ns;
    }
    give(Role::stream, Use::idle, timeline_.meta.sms * (timeline_.end_ns - now));
    return result_;
  }

 private:
  std::vector<Event> phases() const {
    std::vector<Event> phases;
    for (const std::uint32_t id : tracks_) {
      const Track& track = timeline_.tracks[id];
      if (track.rank == result_.rank && track.stage == Stage::stream) {
        const Dependencies::Range range = dependencies_.events_of_track(id);
        phases.insert(phases.end(), timeline_.events.begin() + range.first,
                      timeline_.events.begin() + range.last);
      }
    }
    std::sort(phases.begin(), phases.end(),
              [](const Event& a, const Event& b) { return a.begin_ns < b.begin_ns; });
    return phases;
  }

  void add_phase(const Event& phase, const Window& window) {
    for (const Stage stage :
         {Stage::dispatch_gemm, Stage::gemm_combine_push, Stage::final_reduce}) {
      if (timeline::phase_of(stage, timeline_.meta.serial) != phase.kind) {
        continue;
      }
      std::vector<Block> blocks = blocks_of(dependencies_, result_.rank, stage, tracks_);
      if (!blocks.empty()) {
        add_kernel(std::move(blocks), window);
        return;
      }
    }
    give(Role::stream, use_of(phase.kind), timeline_.meta.sms * window.length());
  }

  void add_overlapping_kernels(const Window& window) {
    std::vector<Block> blocks;
    for (const Stage stage :
         {Stage::dispatch_gemm, Stage::gemm_combine_push, Stage::final_reduce}) {
      std::vector<Block> more = blocks_of(dependencies_, result_.rank, stage, tracks_);
      std::move(more.begin(), more.end(), std::back_inserter(blocks));
    }
    add_kernel(std::move(blocks), window);
  }

  void add_kernel(std::vector<Block> blocks, const Window& window) {
    const auto sms = static_cast<std::size_t>(std::max(timeline_.meta.sms, 0));
    if (sms == 0) {
      return;  // no area to split
    }
    const std::vector<Sm> placed = place(std::move(blocks), sms);
    for (const Sm& sm : placed) {
      const ByRole by_role = merge_.split(sm, window);
      for (int role = 0; role < timeline::kRoles; ++role) {
        for (int use = 0; use < kUses; ++use) {
          give(static_cast<Role>(role), static_cast<Use>(use),
               by_role[static_cast<std::size_t>(role)][static_cast<std::size_t>(use)]);
        }
      }
    }
    give(Role::stream, Use::idle, static_cast<std::int64_t>(sms - placed.size()) * window.length());
  }

  void give(Role role, Use use, std::int64_t ns) {
    at(result_.by_use, use) += ns;
    at(result_.by_role[static_cast<std::size_t>(role)], use) += ns;
  }

  const Dependencies& dependencies_;
  const Timeline& timeline_;
  const std::vector<std::uint32_t>& tracks_;  // of this rank
  Merge merge_;
  RankAccounting result_;
};

}  // namespace

Accounting account(const Dependencies& dependencies) {
  const Timeline& timeline = dependencies.timeline();
  std::map<int, std::vector<std::uint32_t>> tracks_of_rank;
  for (int rank = 0; rank < timeline.wiring.ranks; ++rank) {
    tracks_of_rank[rank];  // a rank without tracks is idle all the time
  }
  for (std::uint32_t id = 0; id < timeline.tracks.size(); ++id) {
    tracks_of_rank[timeline.tracks[id].rank].push_back(id);
  }
  Accounting accounting;
  for (const auto& [rank, tracks] : tracks_of_rank) {
    accounting.ranks.push_back(RankArea(dependencies, rank, tracks).account());
  }
  accounting.gates = blame_gates(dependencies);
  return accounting;
}

Accounting account(const Timeline& timeline) {
  return account(Dependencies(timeline));
}

}  // namespace fusescope::analysis
