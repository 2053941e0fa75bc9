#include "analysis/findings.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <iterator>
#include <map>
#include <set>
#include <vector>

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

// What the path's segments of one step add up to.
struct StepDetail {
  std::array<std::int64_t, timeline::kKinds> by_kind{};
  std::map<int, std::int64_t> by_rank;
  std::map<int, std::int64_t> by_row_block;  // for which row block
  std::set<int> tokens;
  std::set<EventId> events;
  int gaps = 0;
  std::size_t longest = SIZE_MAX;  // segment

  std::int64_t of(Kind kind) const { return by_kind[static_cast<std::size_t>(kind)]; }
};

StepDetail detail_of(Step step, const Dependencies& dependencies, const CriticalPath& path) {
  StepDetail detail;
  const auto length = [&](std::size_t i) {
    return path.segments[i].end_ns - path.segments[i].begin_ns;
  };
  for (std::size_t i = 0; i < path.segments.size(); ++i) {
    const Segment& segment = path.segments[i];
    if (segment.step != step) {
      continue;
    }
    detail.by_rank[segment.rank] += length(i);
    if (segment.waiting_row_block >= 0) {
      detail.by_row_block[segment.waiting_row_block] += length(i);
    }
    if (detail.longest == SIZE_MAX || length(i) > length(detail.longest)) {
      detail.longest = i;
    }
    if (segment.event == kNone) {
      ++detail.gaps;
      continue;
    }
    const Event& event = dependencies.event(segment.event);
    detail.by_kind[static_cast<std::size_t>(event.kind)] += length(i);
    detail.events.insert(segment.event);
    if (event.token >= 0) {
      detail.tokens.insert(event.token);
    }
  }
  return detail;
}

// The key with the most time.
int most(const std::map<int, std::int64_t>& times) {
  const auto found = std::max_element(
      times.begin(), times.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  return found == times.end() ? -1 : found->first;
}

std::string counted(std::size_t count, const std::string& singular) {
  return fmt::format("{} {}{}", count, singular, count == 1 ? "" : "s");
}

// "pull 10.0 us, scatter 2.0 us"; parts of no time are left out.
std::string parts(const StepDetail& detail,
                  const std::vector<std::pair<Kind, std::string>>& kinds) {
  std::string text;
  for (const auto& [kind, called] : kinds) {
    if (detail.of(kind) > 0) {
      text += fmt::format("{}{} {}", text.empty() ? "" : ", ", called, spoken_us(detail.of(kind)));
    }
  }
  return text;
}

const std::vector<std::pair<Kind, std::string>> kDispatchParts = {
    {Kind::pull, "pull"},
    {Kind::scatter, "scatter"},
    {Kind::arrive, "counting arrivals"},
    {Kind::gate_wait, "seeing the open gate"}};
const std::vector<std::pair<Kind, std::string>> kJobParts = {
    {Kind::claim, "claim"}, {Kind::sum, "sum"}, {Kind::push, "push"}, {Kind::elect, "election"}};

std::string head_reason(const Dependencies& dependencies, const StepDetail& detail) {
  const int rank = most(detail.by_rank);
  const EventId kernel = dependencies.phase(rank, Kind::dispatch_gemm);
  const std::int64_t first_tile = PathRules(dependencies).head_end(rank);
  std::string text;
  if (kernel != kNone) {
    text = fmt::format("rank {}'s first tile starts {} after its kernel 1 began", rank,
                       spoken_us(first_tile - dependencies.event(kernel).begin_ns));
  }
  // The tile that starts first tells which row block opened.
  for (const Event& event : dependencies.timeline().events) {
    const Track& track = dependencies.timeline().tracks[event.track];
    if (event.kind != Kind::mainloop || track.stage != Stage::dispatch_gemm || track.rank != rank ||
        event.begin_ns != first_tile) {
      continue;
    }
    const int row_block = dependencies.last_to_open(rank, event.row_block);
    const EventId arrive = dependencies.opening_arrive(rank, row_block);
    if (arrive != kNone) {
      const int token = dependencies.event(arrive).token;
      text += fmt::format(", when token {} completed row block {}", token, row_block);
      const EventId pull = dependencies.of_token(rank, Kind::pull, token);
      if (pull != kNone) {
        text += fmt::format(" (pulled from rank {})", dependencies.event(pull).peer);
      }
    }
    break;
  }
  return text + "; on the path: " + parts(detail, kDispatchParts);
}

std::string order_reason(const StepDetail& detail) {
  return fmt::format(
      "the path moves {} that the waiting row blocks and all before them do not need yet ({}), "
      "most of it while row block {} waits on rank {}",
      counted(detail.tokens.size(), "token"), parts(detail, kDispatchParts),
      most(detail.by_row_block), most(detail.by_rank));
}

std::string bandwidth_reason(const StepDetail& detail, const WaitTable& waits) {
  if (detail.tokens.empty()) {
    return fmt::format("{} on the path had opened before a tile came to look",
                       counted(detail.events.size(), "gate"));
  }
  std::array<std::int64_t, kBlames> blamed{};
  std::int64_t all = 0;
  for (const WaitTotal& total : waits.source_ranks) {
    all += total.wait_ns;
    for (std::size_t blame = 0; blame < kBlames; ++blame) {
      blamed[blame] += total.ns_by_blame[blame];
    }
  }
  const auto share = [&](Blame blame) {
    return spoken_share(all == 0 ? 0
                                 : static_cast<double>(blamed[static_cast<std::size_t>(blame)]) /
                                       static_cast<double>(all));
  };
  // No gate led there where a block's own fetching did.
  const int row_block = most(detail.by_row_block);
  std::string waited = "blocks still fetch tokens after the first tile started, longest";
  if (row_block >= 0) {
    waited = fmt::format(
        "tiles wait for needed tokens after the first tile started, longest for row block {}",
        row_block);
  }
  return fmt::format(
      "{} on rank {}; on the path: {}; over all closed gates the last token was not yet issued {} "
      "of the time, in flight {}, landed but not yet seen {}",
      waited, most(detail.by_rank), parts(detail, kDispatchParts), share(Blame::not_yet_issued),
      share(Blame::in_flight), share(Blame::landed_not_seen));
}

std::string drain_reason(const Dependencies& dependencies, const StepDetail& detail) {
  const int rank = most(detail.by_rank);
  const std::int64_t last_tile = PathRules(dependencies).last_tile_end(rank);
  const Timeline& timeline = dependencies.timeline();
  const int tokens = timeline.wiring.ranks * timeline.wiring.tokens_per_rank;
  std::size_t unclaimed = 0;
  std::set<std::pair<timeline::Role, int>> blocks;  // roles may count their blocks from 0 each
  for (int token = 0; token < tokens; ++token) {
    const EventId sum = dependencies.of_token(rank, Kind::sum, token);
    if (sum != kNone && dependencies.event(sum).begin_ns >= last_tile) {
      ++unclaimed;
      const Track& track = dependencies.track_of(sum);
      blocks.insert({track.role, track.block});
    }
  }
  return fmt::format(
      "{} of {} on rank {} had not started to sum when its last tile ended, and {} "
      "ran them; on the path: {}",
      unclaimed, counted(static_cast<std::size_t>(tokens), "job"), rank,
      counted(blocks.size(), "block"), parts(detail, kJobParts));
}

std::string watermark_reason(const Dependencies& dependencies, const StepDetail& detail) {
  std::string hops;
  for (const EventId id : detail.events) {
    const Event& event = dependencies.event(id);
    if (event.kind == Kind::watermark) {
      hops += fmt::format("{}rank {} to rank {}", hops.empty() ? "" : ", ",
                          dependencies.rank_of(id), event.peer);
    }
  }
  return (hops.empty() ? std::string() : hops + "; ") +
         parts(detail, {{Kind::watermark, "raising it"}, {Kind::reduce_wait, "seeing it"}});
}

// Who came last to a phase that all ranks do together.
std::string collective_reason(const Dependencies& dependencies, const StepDetail& detail) {
  if (detail.longest == SIZE_MAX || detail.events.empty()) {
    return {};
  }
  std::string text;
  for (const EventId id : detail.events) {
    const Event& event = dependencies.event(id);
    const EventId last = dependencies.last_to_enter(event.kind, event.index);
    std::int64_t first = INT64_MAX;
    for (int rank = 0; rank < dependencies.timeline().wiring.ranks; ++rank) {
      const EventId phase = dependencies.phase(rank, event.kind, event.index);
      first = phase == kNone ? first : std::min(first, dependencies.event(phase).begin_ns);
    }
    if (last == kNone || first == INT64_MAX) {
      continue;
    }
    const std::string which =
        event.kind == Kind::barrier ? fmt::format("barrier {}: ", event.index) : "";
    const std::int64_t spread = dependencies.event(last).begin_ns - first;
    text += fmt::format("{}{}", text.empty() ? "" : "; ", which);
    text += spread == 0 ? "all ranks entered together"
                        : fmt::format("rank {} entered last, {} after the first",
                                      dependencies.rank_of(last), spoken_us(spread));
  }
  return text;
}

std::string gap_reason(const Dependencies& dependencies, const CriticalPath& path,
                       const StepDetail& detail) {
  const Segment& gap = path.segments[detail.longest];
  std::string before = " at the end";
  for (std::size_t i = detail.longest + 1; i < path.segments.size(); ++i) {
    const Segment& next = path.segments[i];
    // What follows may be a gap, too: a tile's wait for the last activations.
    if (next.event != kNone && next.step != Step::launch_gap) {
      const Event& event = dependencies.event(next.event);
      before = fmt::format(
          " before {} on rank {}",
          timeline::is_stream_phase(event.kind) ? timeline::name(event.kind) : name(next.step),
          next.rank);
      break;
    }
  }
  return fmt::format("{} on the path, the longest {}{}",
                     counted(static_cast<std::size_t>(detail.gaps) + detail.events.size(), "gap"),
                     spoken_us(gap.end_ns - gap.begin_ns), before);
}

}  // namespace

std::string spoken_us(std::int64_t ns) {
  const std::int64_t tenths = (std::abs(ns) + 50) / 100;
  std::string whole = std::to_string(tenths / 10);
  for (auto i = static_cast<std::ptrdiff_t>(whole.size()) - 3; i > 0; i -= 3) {
    whole.insert(static_cast<std::size_t>(i), 1, ',');
  }
  return fmt::format("{}{}.{} us", ns < 0 ? "-" : "", whole, tenths % 10);
}

std::string spoken_share(double fraction) {
  return fmt::format("{:.1f}%", 100 * fraction);
}

std::string reason(Step step, const Dependencies& dependencies, const CriticalPath& path,
                   const WaitTable& waits) {
  const StepDetail detail = detail_of(step, dependencies, path);
  if (detail.longest == SIZE_MAX) {
    return {};
  }
  switch (step) {
    case Step::dispatch_head:
      return head_reason(dependencies, detail);
    case Step::dispatch_order:
      return order_reason(detail);
    case Step::dispatch_bandwidth:
      return bandwidth_reason(detail, waits);
    case Step::combine_wait:
      return fmt::format("{} on the path looked for row blocks that were complete",
                         counted(detail.events.size(), "job"));
    case Step::combine_work:
      return fmt::format("{} on the path while tiles still ran on rank {}: {}",
                         counted(detail.tokens.size(), "job"), most(detail.by_rank),
                         parts(detail, kJobParts));
    case Step::push_drain:
      return drain_reason(dependencies, detail);
    case Step::watermark:
      return watermark_reason(dependencies, detail);
    case Step::final_reduce:
      return fmt::format("rank {} sums the planes of {}", most(detail.by_rank),
                         counted(path.by_rank.size(), "rank"));
    case Step::copy_in:
      return fmt::format("rank {} copies its tokens to where its peers can read them",
                         most(detail.by_rank));
    case Step::scatter_rows:
      return fmt::format("rank {} copies every gathered row to its {} slots", most(detail.by_rank),
                         dependencies.timeline().wiring.topk);
    case Step::ids_exchange:
    case Step::barrier:
    case Step::all_gather:
    case Step::reduce_scatter:
      return collective_reason(dependencies, detail);
    case Step::launch_gap:
      return gap_reason(dependencies, path, detail);
    case Step::gemm_1:
    case Step::gemm_2: {
      const auto tiles = std::count_if(detail.events.begin(), detail.events.end(), [&](EventId id) {
        return dependencies.event(id).kind == Kind::mainloop;
      });
      return tiles == 0 ? std::string()
                        : fmt::format("{} one after another, most on rank {}",
                                      counted(static_cast<std::size_t>(tiles), "tile"),
                                      most(detail.by_rank));
    }
    default:
      return {};
  }
}

}  // namespace fusescope::analysis
