// The tables of waits: which rank waited for which, at what, and for which row.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>

#include "reports/format.hpp"
#include "reports/sections.hpp"

namespace fusescope::reports {

namespace {

constexpr std::size_t kGatesShown = 12;
constexpr std::size_t kGatesListed = 200;

std::string sm_us(double nanoseconds) {
  return us(nanoseconds / 1000);
}

}  // namespace

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
  gates.reserve(by_row_block.size());
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

}  // namespace fusescope::reports
