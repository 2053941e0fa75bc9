// The tables that explain the chosen run: where its SM time and its wall went.

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "reports/format.hpp"
#include "reports/palette.hpp"
#include "reports/sections.hpp"

namespace fusescope::reports {

namespace {

// The longest stretch of the critical path that stays in one step.
Span longest_stretch(const ChosenRun& run, analysis::Step step) {
  Span longest;
  Span present{0, -1};
  for (const analysis::Segment& segment : run.attribution.path.segments) {
    if (segment.step != step) {
      continue;
    }
    if (present.end_ns == segment.begin_ns) {
      present.end_ns = segment.end_ns;
    } else {
      present = {segment.begin_ns, segment.end_ns, segment.rank};
    }
    if (present.end_ns - present.begin_ns > longest.end_ns - longest.begin_ns) {
      longest = present;
    }
  }
  longest.begin_ns -= run.timeline.begin_ns;
  longest.end_ns -= run.timeline.begin_ns;
  return longest;
}

std::string sm_us(double nanoseconds) {
  return us(nanoseconds / 1000);
}

}  // namespace

Table accounting_table(const ChosenRun& run) {
  Table table;
  table.caption = "Area SMs x wall of every rank [SM-µs]";
  table.columns = {{"use"}};
  std::int64_t area = 0;
  for (const analysis::RankAccounting& rank : run.attribution.accounting.ranks) {
    table.columns.push_back({fmt::format("rank {}", rank.rank), true});
    area += rank.area_ns;
  }
  table.columns.push_back({"all ranks", true});
  table.columns.push_back({"share", true});
  for (int i = 0; i < analysis::kUses; ++i) {
    const auto use = static_cast<analysis::Use>(i);
    std::vector<Cell> row = {std::string(analysis::name(use))};
    row.front().swatch = std::string(color(use).slug);
    std::int64_t all = 0;
    for (const analysis::RankAccounting& rank : run.attribution.accounting.ranks) {
      const std::int64_t time = rank.by_use[static_cast<std::size_t>(i)];
      row.push_back(sm_us(static_cast<double>(time)));
      all += time;
    }
    if (all == 0) {
      continue;
    }
    row.push_back(sm_us(static_cast<double>(all)));
    const double share = area > 0 ? static_cast<double>(all) / static_cast<double>(area) : 0;
    row.push_back(percent(share));
    row.back().bar = share;
    table.rows.push_back(std::move(row));
  }
  table.total = {"sum of the rows"};
  std::int64_t sum_all = 0;
  for (const analysis::RankAccounting& rank : run.attribution.accounting.ranks) {
    std::int64_t sum = 0;
    for (const std::int64_t time : rank.by_use) {
      sum += time;
    }
    sum_all += sum;
    table.total.push_back(sm_us(static_cast<double>(sum)));
  }
  table.total.push_back(sm_us(static_cast<double>(sum_all)));
  table.total.push_back(area > 0 ? percent(static_cast<double>(sum_all) / static_cast<double>(area))
                                 : "");
  return table;
}

Table role_table(const ChosenRun& run) {
  Table table;
  table.caption = "The same area by the role of the SM's block, all ranks [SM-µs]";
  table.columns = {{"use"}};
  constexpr std::array<const char*, timeline::kRoles> kHeads = {"no block", "compute",
                                                                "communication", "reduce"};
  for (const char* head : kHeads) {
    table.columns.push_back({head, true});
  }
  table.columns.push_back({"all", true});
  std::array<std::int64_t, timeline::kRoles + 1> sums{};
  for (int i = 0; i < analysis::kUses; ++i) {
    const auto use = static_cast<analysis::Use>(i);
    std::array<std::int64_t, timeline::kRoles + 1> times{};
    for (const analysis::RankAccounting& rank : run.attribution.accounting.ranks) {
      for (std::size_t role = 0; role < timeline::kRoles; ++role) {
        times[role] += rank.by_role[role][static_cast<std::size_t>(i)];
        times.back() += rank.by_role[role][static_cast<std::size_t>(i)];
      }
    }
    if (times.back() == 0) {
      continue;
    }
    std::vector<Cell> row = {std::string(analysis::name(use))};
    row.front().swatch = std::string(color(use).slug);
    for (std::size_t role = 0; role < times.size(); ++role) {
      row.push_back(times[role] == 0 ? "" : sm_us(static_cast<double>(times[role])));
      sums[role] += times[role];
    }
    table.rows.push_back(std::move(row));
  }
  table.total = {"sum of the rows"};
  for (const std::int64_t sum : sums) {
    table.total.push_back(sm_us(static_cast<double>(sum)));
  }
  return table;
}

Table path_table(const ChosenRun& run) {
  Table table;
  table.caption = "Critical path by step, to the nanosecond";
  table.columns = {{"step"},
                   {"time [µs]", true},
                   {"share of the wall", true},
                   {"exposed communication [µs]", true},
                   {"longest stretch [µs]", true}};
  const auto wall = static_cast<double>(run.timeline.wall_ns());
  std::int64_t sum = 0;
  std::int64_t all_exposed = 0;
  for (int i = 0; i < analysis::kSteps; ++i) {
    const auto step = static_cast<analysis::Step>(i);
    const std::int64_t time = run.attribution.path.by_step[static_cast<std::size_t>(i)];
    sum += time;
    if (time == 0) {
      continue;
    }
    const double share = wall > 0 ? static_cast<double>(time) / wall : 0;
    const Span stretch = longest_stretch(run, step);
    const std::int64_t exposed = run.attribution.path.exposed_by_step[static_cast<std::size_t>(i)];
    all_exposed += exposed;
    std::vector<Cell> row = {std::string(analysis::name(step)), us_exact(time), percent(share),
                             exposed > 0 ? us_exact(exposed) : "",
                             us_exact(stretch.end_ns - stretch.begin_ns)};
    row[0].swatch = std::string(color(step).slug);
    row[2].bar = share;
    row[4].show = stretch;
    table.rows.push_back(std::move(row));
  }
  table.total = {"sum", us_exact(sum), wall > 0 ? percent(static_cast<double>(sum) / wall) : "",
                 us_exact(all_exposed),
                 fmt::format("wall {} µs", us_exact(run.timeline.wall_ns()))};
  return table;
}

std::vector<StripRun> path_strip(const ChosenRun& run, int columns) {
  std::vector<StripRun> strip;
  const auto wall = static_cast<double>(run.timeline.wall_ns());
  if (wall <= 0 || run.attribution.path.segments.empty()) {
    return strip;
  }
  std::size_t at = 0;
  for (int column = 0; column < columns; ++column) {
    const double begin = wall * column / columns;
    const double end = wall * (column + 1) / columns;
    std::array<double, analysis::kSteps> share{};
    while (at < run.attribution.path.segments.size()) {
      const analysis::Segment& segment = run.attribution.path.segments[at];
      const auto from = static_cast<double>(segment.begin_ns - run.timeline.begin_ns);
      const auto to = static_cast<double>(segment.end_ns - run.timeline.begin_ns);
      share[static_cast<std::size_t>(segment.step)] +=
          std::max(0.0, std::min(to, end) - std::max(from, begin));
      if (to > end) {
        break;
      }
      ++at;
    }
    const auto most = std::max_element(share.begin(), share.end());
    const auto step = static_cast<analysis::Step>(most - share.begin());
    if (!strip.empty() && strip.back().step == step) {
      strip.back().end = end / wall;
    } else {
      strip.push_back({begin / wall, end / wall, step});
    }
  }
  return strip;
}

}  // namespace fusescope::reports
