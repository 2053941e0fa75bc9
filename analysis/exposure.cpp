#include "analysis/exposure.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <set>
#include <utility>

#include "analysis/rungs.hpp"
#include "analysis/summary.hpp"
#include "timeline/timeline.hpp"

namespace fusescope::analysis {
namespace {

using timeline::Event;
using timeline::Kind;
using timeline::Role;
using timeline::Stage;
using timeline::Timeline;
using timeline::Track;

constexpr double kOfWall = 0.03;  // views that differ by less agree

double us(std::int64_t ns) {
  return static_cast<double>(ns) / 1e3;
}

bool is_communication_phase(Kind kind) {
  switch (kind) {
    case Kind::ids_exchange:
    case Kind::barrier:
    case Kind::copy_in:
    case Kind::final_reduce:
    case Kind::all_gather:
    case Kind::scatter_rows:
    case Kind::reduce_scatter:
      return true;
    default:
      return false;
  }
}

bool is_push(Kind kind) {
  return kind == Kind::push || kind == Kind::elect || kind == Kind::watermark;
}

bool is_job(Kind kind) {
  return is_push(kind) || kind == Kind::claim || kind == Kind::ready_wait || kind == Kind::sum;
}

bool is_job(Step step) {
  return step == Step::combine_wait || step == Step::combine_work || step == Step::push_drain;
}

using Spans = std::vector<std::pair<std::int64_t, std::int64_t>>;

std::int64_t covered_ns(Spans spans) {
  std::sort(spans.begin(), spans.end());
  std::int64_t ns = 0;
  std::int64_t reached = INT64_MIN;
  for (const auto& [begin, end] : spans) {
    if (end > reached) {
      ns += end - std::max(begin, reached);
      reached = end;
    }
  }
  return ns;
}

// What a block of kernel 2 did after the rank's last tile. A push that is under way while the block sums
// the next row holds nothing up.
struct BlockDrain {
  Spans jobs;        // all of them
  Spans but_pushes;  // claims, waits, sums
};

struct RankTimes {
  std::int64_t phases_ns = 0;       // communication phases of the stream
  std::set<int> compute_blocks;     // of kernel 1
  std::int64_t last_tile_end = 0;   // of kernel 2
  std::int64_t combine_end = 0;     // of kernel 2
  std::map<int, BlockDrain> drain;  // by block

  // Of the time in jobs after the last tile, what pushes alone take.
  double push_share() const {
    std::int64_t jobs = 0;
    std::int64_t but_pushes = 0;
    for (const auto& [block, spans] : drain) {
      jobs += covered_ns(spans.jobs);
      but_pushes += covered_ns(spans.but_pushes);
    }
    return jobs > 0 ? static_cast<double>(jobs - but_pushes) / static_cast<double>(jobs) : 0;
  }
};

std::vector<RankTimes> times_of(const Timeline& timeline) {
  std::vector<RankTimes> ranks(static_cast<std::size_t>(timeline.wiring.ranks));
  const auto rank_of = [&](const Track& track) -> RankTimes& {
    return ranks.at(static_cast<std::size_t>(track.rank));
  };
  for (const Event& event : timeline.events) {
    const Track& track = timeline.tracks.at(event.track);
    RankTimes& rank = rank_of(track);
    if (track.stage == Stage::stream) {
      rank.phases_ns += is_communication_phase(event.kind) ? event.end_ns - event.begin_ns : 0;
      if (event.kind == Kind::gemm_combine_push) {
        rank.combine_end = event.end_ns;
      }
    } else if (track.stage == Stage::dispatch_gemm && track.role == Role::compute) {
      rank.compute_blocks.insert(track.block);
    } else if (track.stage == Stage::gemm_combine_push && event.kind == Kind::epilogue) {
      rank.last_tile_end = std::max(rank.last_tile_end, event.end_ns);
    }
  }
  for (const Event& event : timeline.events) {
    const Track& track = timeline.tracks.at(event.track);
    RankTimes& rank = rank_of(track);
    if (is_job(event.kind) && rank.last_tile_end > 0 && event.end_ns > rank.last_tile_end) {
      BlockDrain& block = rank.drain[track.block];
      const std::pair span(std::max(event.begin_ns, rank.last_tile_end), event.end_ns);
      block.jobs.push_back(span);
      if (!is_push(event.kind)) {
        block.but_pushes.push_back(span);
      }
    }
  }
  return ranks;
}

double by_accounting_us(const RankAccounting& accounting, const RankTimes& times) {
  const auto& compute = accounting.by_role[static_cast<std::size_t>(Role::compute)];
  double ns = static_cast<double>(times.phases_ns);
  if (!times.compute_blocks.empty()) {
    ns += static_cast<double>(compute[static_cast<std::size_t>(Use::gate_wait)] +
                              compute[static_cast<std::size_t>(Use::communication)]) /
          static_cast<double>(times.compute_blocks.size());
  }
  ns += static_cast<double>(std::max<std::int64_t>(0, times.combine_end - times.last_tile_end)) *
        times.push_share();
  return ns / 1e3;
}

// Half of what the timeline is not sure of: clocks of two ranks, and what recording cost.
double timeline_error_us(const Timeline& timeline) {
  const timeline::Meta& meta = timeline.meta;
  const double recording =
      meta.recorded_us > 0 ? std::abs(meta.recorded_us - meta.unrecorded_us) : 0;
  return meta.clock_bound_ns / 1e3 + recording;
}

ExposedView by_path(const Timeline& timeline, const Attribution& attribution) {
  return {"critical path", us(attribution.exposed_ns), timeline_error_us(timeline),
          "clocks' bound and cost of recording", ""};
}

ExposedView by_waits(const Timeline& timeline, const Attribution& attribution) {
  ExposedView view{"wait accounting", 0, 0, "half the range of the ranks, and the same", ""};
  const std::vector<RankTimes> times = times_of(timeline);
  std::vector<double> ranks;
  for (const RankAccounting& rank : attribution.accounting.ranks) {
    ranks.push_back(by_accounting_us(rank, times.at(static_cast<std::size_t>(rank.rank))));
    view.us += ranks.back();
  }
  if (ranks.empty()) {
    view.missing = "no rank is on record";
    return view;
  }
  view.us /= static_cast<double>(ranks.size());
  const auto [low, high] = std::minmax_element(ranks.begin(), ranks.end());
  view.error_us = (*high - *low) / 2 + timeline_error_us(timeline);
  return view;
}

// Of the path: the fused layer's own work that is no communication and that lengthens it beyond compute-only
// rungs. Jobs beside tiles do not: a rung of compute only has those tiles too, so that time is in both walls.
double other_own_work_us(const Timeline& timeline, const CriticalPath& path) {
  std::int64_t last_tile_end = timeline.begin_ns;
  for (const RankTimes& rank : times_of(timeline)) {
    last_tile_end = std::max(last_tile_end, rank.last_tile_end);
  }
  std::int64_t ns = 0;
  for (const Segment& segment : path.segments) {
    if (segment.step == Step::schedule_build) {
      ns += segment.end_ns - segment.begin_ns;
    } else if (is_job(segment.step) && !segment.exposed) {
      ns += std::max<std::int64_t>(0, segment.end_ns - std::max(segment.begin_ns, last_tile_end));
    }
  }
  return us(ns);
}

ExposedView by_rungs(const Timeline& timeline, const Attribution& attribution, const Rungs* rungs) {
  ExposedView view{"rungs", 0, 0, "bootstrap of the difference of two medians", ""};
  if (rungs == nullptr) {
    view.missing = "the rungs were not sampled: run with --rungs";
    return view;
  }
  double low = 0;
  double high = 0;
  for (int i = static_cast<int>(RungCost::contention); i < kRungCosts; ++i) {
    const Estimate& cost = rungs->costs[static_cast<std::size_t>(i)];
    view.us += cost.us;
    // Differences of neighbours share a rung: as if independent, their sum's interval is too wide.
    low = std::hypot(low, cost.us - cost.low);
    high = std::hypot(high, cost.high - cost.us);
  }
  view.us -= other_own_work_us(timeline, attribution.path);
  view.error_us = (low + high) / 2;
  return view;
}

std::string warning(const ExposedView& a, const ExposedView& b, double wall_us) {
  std::string text = fmt::format(
      "{} and {} disagree: {:.1f} +- {:.1f} us against {:.1f} +- {:.1f} us, {:.1f}% of the wall",
      a.view, b.view, a.us, a.error_us, b.us, b.error_us, 100 * std::abs(a.us - b.us) / wall_us);
  const ExposedView& by_rungs = a.view == "rungs" ? a : b;
  const ExposedView& other = a.view == "rungs" ? b : a;
  if (by_rungs.view == "rungs") {
    text +=
        by_rungs.us > other.us
            ? "; tiles that are slower beside communication count in the rungs alone"
            : "; the rungs run without records, and a study may overlap what the layer does not";
  } else {
    text += "; the path is of the slowest blocks, the accounting a mean over all";
  }
  return text + ".";
}

void compare_views(Exposure& exposure) {
  int stating = 0;
  for (std::size_t i = 0; i < exposure.views.size(); ++i) {
    const ExposedView& a = exposure.views[i];
    stating += a.missing.empty();
    for (std::size_t j = i + 1; j < exposure.views.size(); ++j) {
      const ExposedView& b = exposure.views[j];
      if (!a.missing.empty() || !b.missing.empty()) {
        continue;
      }
      const double apart = std::abs(a.us - b.us);
      exposure.residual_us = std::max(exposure.residual_us, apart);
      if (apart > a.error_us + b.error_us && apart > kOfWall * exposure.wall_us) {
        exposure.warnings.push_back(warning(a, b, exposure.wall_us));
      }
    }
  }
  exposure.agree = stating > 1 && exposure.warnings.empty();
  exposure.statement =
      stating < 2 ? "Fewer than two views state exposed communication: nothing to compare."
                  : fmt::format(
                        "{} views {}: the largest difference is {:.1f} us, {:.1f}% of the "
                        "wall.",
                        stating, exposure.agree ? "agree" : "do not all agree",
                        exposure.residual_us, 100 * exposure.residual_us / exposure.wall_us);
}

}  // namespace

Exposure state_exposure(const Timeline& timeline, const Attribution& attribution,
                        const Rungs* rungs) {
  Exposure exposure;
  if (!attribution.refusal.empty()) {
    for (const char* view : {"critical path", "wait accounting", "rungs"}) {
      exposure.views.push_back({view, 0, 0, "", attribution.refusal});
    }
    exposure.statement = "No view states exposed communication: " + attribution.refusal + ".";
    return exposure;
  }
  exposure.wall_us = us(timeline.wall_ns());
  exposure.views = {by_path(timeline, attribution), by_waits(timeline, attribution),
                    by_rungs(timeline, attribution, rungs)};
  compare_views(exposure);
  if (rungs != nullptr) {
    const Estimate& tax = rungs->costs[static_cast<std::size_t>(RungCost::sm_tax)];
    exposure.statement +=
        fmt::format(" Beside it, the SM tax is {:.1f} us, by the rungs alone.", tax.us);
  }
  return exposure;
}

std::string exposure_text(const Exposure& exposure) {
  std::string text = fmt::format("{:<21} {:>10} {:>7}\n", "exposed communication", "us", "wall");
  for (const ExposedView& view : exposure.views) {
    if (!view.missing.empty()) {
      text += fmt::format("{:<21} {:>10}  {}\n", view.view, "-", view.missing);
      continue;
    }
    text += fmt::format("{:<21} {:>10.1f} {:>6.1f}%", view.view, view.us,
                        100 * view.us / exposure.wall_us);
    text +=
        view.error_us > 0 ? fmt::format("  +- {:.1f} ({})\n", view.error_us, view.of_error) : "\n";
  }
  text += exposure.statement + '\n';
  for (const std::string& warning : exposure.warnings) {
    text += "Warning: " + warning + '\n';
  }
  return text;
}

}  // namespace fusescope::analysis
