// The tables of rows between GPUs: how evenly the ranks' links were loaded.

#include <fmt/format.h>

#include <algorithm>

#include "reports/format.hpp"
#include "reports/palette.hpp"
#include "reports/sections.hpp"

namespace fusescope::reports {

const analysis::LinkLoad& link_load(const ChosenRun& run, timeline::Kind kind) {
  return kind == timeline::Kind::pull ? run.attribution.pulls : run.attribution.pushes;
}

double most_on_the_way(const analysis::LinkLoad& load) {
  double most = 0;
  for (const analysis::LinkEnd& end : load.ranks) {
    most = std::max(most, *std::max_element(end.load.begin(), end.load.end()));
  }
  return most;
}

std::string link_statement(const ChosenRun& run, timeline::Kind kind) {
  const std::string& statement = link_load(run, kind).statement;
  return statement.empty() ? "" : with_micro_sign(statement) + ".";
}

Table link_table(const ChosenRun& run, timeline::Kind kind) {
  const bool pulls = kind == timeline::Kind::pull;
  const analysis::LinkLoad& load = link_load(run, kind);
  const auto at = [&](std::int64_t ns) {
    return us(static_cast<double>(ns - run.timeline.begin_ns) / 1000);
  };
  Table table;
  table.caption = fmt::format("{} by the rank that they {}, from {} to {} µs of the iteration",
                              pulls ? "Pulls" : "Pushes", pulls ? "come from" : "go to",
                              at(load.begin_ns), at(load.end_ns));
  table.columns = {{pulls ? "from" : "to"},
                   {"rows", true},
                   {"µs per row", true},
                   {"in convoy there [µs]", true},
                   {"share of its rows' time", true},
                   {"rows on the way, over that span"}};
  const double most = most_on_the_way(load);
  for (std::size_t rank = 0; rank < load.ranks.size(); ++rank) {
    const analysis::LinkEnd& end = load.ranks[rank];
    const auto row_us = static_cast<double>(end.row_ns) / 1000;
    const double share =
        end.row_ns > 0 ? static_cast<double>(end.convoy_row_ns) / static_cast<double>(end.row_ns)
                       : 0;
    std::vector<Cell> row = {fmt::format("rank {}", rank),
                             count(end.rows),
                             end.rows > 0 ? us(row_us / static_cast<double>(end.rows)) : "",
                             us(static_cast<double>(end.convoy_ns) / 1000),
                             percent(share),
                             Cell()};
    row[0].strong = static_cast<int>(rank) == load.bottleneck;
    row[4].bar = share;
    Strip strip{std::string(color(kind).slug), end.load};
    for (double& shade : strip.shades) {
      shade /= most;
    }
    row[5].strip = std::move(strip);
    table.rows.push_back(std::move(row));
  }
  return table;
}

}  // namespace fusescope::reports
