// The tables that explain the chosen run, and where the report's numbers come from.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>

#include "reports/format.hpp"
#include "reports/palette.hpp"
#include "reports/sections.hpp"

namespace fusescope::reports {

namespace {

constexpr std::size_t kGatesShown = 12;
constexpr std::size_t kGatesListed = 200;

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

Table blame_matrix(const ChosenRun& run) {
  std::map<int, std::map<int, std::int64_t>> wait;
  std::map<int, bool> sources;
  for (const analysis::GateBlame& gate : run.attribution.accounting.gates) {
    wait[gate.rank][gate.source_rank] += gate.wait_ns;
    sources[gate.source_rank] = true;
  }
  Table table;
  table.caption =
      "Gate waits by waiting rank (down) and by the source of the last row to land (across) "
      "[block-µs]";
  table.columns = {{"waiting"}};
  for (const auto& [source, present] : sources) {
    table.columns.push_back({source < 0 ? "unknown" : fmt::format("for rank {}", source), true});
  }
  table.columns.push_back({"all", true});
  std::int64_t most = 1;
  for (const auto& [rank, by_source] : wait) {
    for (const auto& [source, time] : by_source) {
      most = std::max(most, time);
    }
  }
  for (const auto& [rank, by_source] : wait) {
    std::vector<Cell> row = {fmt::format("rank {}", rank)};
    std::int64_t all = 0;
    for (const auto& [source, present] : sources) {
      const auto found = by_source.find(source);
      const std::int64_t time = found == by_source.end() ? 0 : found->second;
      all += time;
      row.push_back(sm_us(static_cast<double>(time)));
      row.back().bar = static_cast<double>(time) / static_cast<double>(most);
    }
    row.push_back(sm_us(static_cast<double>(all)));
    table.rows.push_back(std::move(row));
  }
  return table;
}

namespace {

// The blocks of one rank that waited for one row block: their waits end with the same row.
struct ClosedGate {
  const analysis::GateBlame* longest = nullptr;
  int blocks = 0;
  std::int64_t wait_ns = 0;
  std::array<std::int64_t, analysis::kBlames> ns_by_blame{};
};

std::vector<ClosedGate> closed_gates(const analysis::Accounting& accounting) {
  std::map<std::pair<int, int>, ClosedGate> by_row_block;
  for (const analysis::GateBlame& gate : accounting.gates) {
    ClosedGate& closed = by_row_block[{gate.rank, gate.row_block}];
    if (closed.longest == nullptr || gate.wait_ns > closed.longest->wait_ns) {
      closed.longest = &gate;
    }
    ++closed.blocks;
    closed.wait_ns += gate.wait_ns;
    for (std::size_t i = 0; i < closed.ns_by_blame.size(); ++i) {
      closed.ns_by_blame[i] += gate.ns_by_blame[i];
    }
  }
  std::vector<ClosedGate> gates;
  for (const auto& [key, closed] : by_row_block) {
    gates.push_back(closed);
  }
  std::stable_sort(gates.begin(), gates.end(),
                   [](const ClosedGate& a, const ClosedGate& b) { return a.wait_ns > b.wait_ns; });
  return gates;
}

}  // namespace

Table blame_table(const ChosenRun& run) {
  Table table;
  table.caption =
      "The row blocks that were waited for longest, and the last row of each [block-µs]";
  table.columns = {{"waiting"},
                   {"row block", true},
                   {"expert", true},
                   {"blocks", true},
                   {"wait", true},
                   {"last token", true},
                   {"from", true},
                   {"as the longest wait began"},
                   {"not yet issued", true},
                   {"in flight", true},
                   {"landed, not seen", true},
                   {"timeline"}};
  table.shown = kGatesShown;
  for (const ClosedGate& closed : closed_gates(run.attribution.accounting)) {
    if (table.rows.size() == kGatesListed) {
      break;
    }
    const analysis::GateBlame& gate = *closed.longest;
    std::vector<Cell> row = {
        fmt::format("rank {}", gate.rank),
        fmt::format("{}", gate.row_block),
        gate.expert < 0 ? "unknown" : fmt::format("{}", gate.expert),
        fmt::format("{}", closed.blocks),
        us_exact(closed.wait_ns),
        gate.last_token < 0 ? "none" : fmt::format("{}", gate.last_token),
        gate.source_rank < 0 ? "unknown" : fmt::format("rank {}", gate.source_rank),
        std::string(analysis::name(gate.blame))};
    for (const std::int64_t part : closed.ns_by_blame) {
      row.push_back(us_exact(part));
    }
    const std::int64_t begin = gate.begin_ns - run.timeline.begin_ns;
    row.emplace_back();
    row.back().show = {begin, begin + gate.wait_ns, gate.rank, true};
    row[4].strong = true;
    table.rows.push_back(std::move(row));
  }
  return table;
}

Table wait_table(const ChosenRun& run) {
  Table table;
  table.caption = "Waits added up by who waited, at what, and for whom [block-µs]";
  table.columns = {{"waiting"},
                   {"at"},
                   {"for"},
                   {"waits", true},
                   {"time [µs]", true},
                   {"not yet issued", true},
                   {"in flight", true},
                   {"landed, not seen", true}};
  table.shown = 16;
  for (const analysis::WaitEdge& edge : run.attribution.waits.edges) {
    std::vector<Cell> row = {
        fmt::format("rank {} {}", edge.waiting_rank, timeline::name(edge.role)),
        std::string(timeline::name(edge.kind)),
        edge.source_rank < 0 ? std::string("not on record")
                             : fmt::format("rank {}", edge.source_rank),
        count(edge.waits), sm_us(static_cast<double>(edge.wait_ns))};
    for (const std::int64_t part : edge.ns_by_blame) {
      row.push_back(sm_us(static_cast<double>(part)));
    }
    table.rows.push_back(std::move(row));
  }
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

Table run_table(const ReportInput& input) {
  Table table;
  table.caption = "What made this report";
  table.columns = {{"what"}, {"value"}};
  const auto add = [&](const char* what, const std::string& value, bool code = false) {
    if (!value.empty()) {
      table.rows.push_back({what, value});
      table.rows.back().back().code = code;
    }
  };
  add("sweep", input.name);
  add("problem", input.problem);
  add("numbers are", std::string(timeline::name(input.provenance)) +
                         (input.source.empty() ? "" : ": " + input.source));
  add("engine", input.engine);
  add("device profile", input.profile);
  add("the profile", input.profile_about);
  add("command", input.command, true);
  add("fusescope", input.version + (input.commit.empty() ? "" : ", commit " + input.commit));
  add("date", input.date);
  if (input.chosen) {
    const timeline::Meta& meta = input.chosen->timeline.meta;
    add("run explained",
        input.chosen->name + (input.chosen->why.empty() ? "" : ", " + input.chosen->why));
    add("its config", meta.config, true);
    add("its iteration", meta.chosen);
    add("its clocks", meta.clock_bound_ns > 0 ? fmt::format("aligned to ± {} ns between ranks",
                                                            number(meta.clock_bound_ns))
                                              : std::string("one clock for all ranks"));
    add("records dropped",
        meta.dropped == 0 ? "none" : count(static_cast<long long>(meta.dropped)));
  }
  for (const auto& [what, path] : input.files) {
    table.rows.push_back({what, path});
    table.rows.back().back().code = true;
  }
  return table;
}

Table profile_table(const ReportInput& input) {
  Table table;
  table.caption = "Numbers of the device profile and where each comes from";
  table.columns = {{"number"}, {"value", true}, {"unit"}, {"origin"}, {"source"}};
  table.shown = 40;
  for (const ProfileNumber& row : input.profile_numbers) {
    table.rows.push_back({row.name, row.value, row.unit, row.origin, row.source});
  }
  return table;
}

}  // namespace fusescope::reports
