#include <fmt/format.h>

#include <algorithm>

#include "reports/format.hpp"
#include "reports/trace/trace_report.hpp"

namespace fusescope::reports {
namespace {

using analysis::DeviceAttribution;
using analysis::KernelRow;
using analysis::RangeRow;
using analysis::TraceAttribution;
using analysis::WorkClass;

constexpr std::size_t kNameWidth = 90;

// Kernels' names run to thousands of characters.
std::string shortened(const std::string& name) {
  if (name.size() <= kNameWidth) {
    return name;
  }
  std::size_t end = kNameWidth - 3;
  while (end > 0 && (static_cast<unsigned char>(name[end]) & 0xc0) == 0x80) {
    --end;  // not inside a character
  }
  return name.substr(0, end) + "...";
}

std::string share(std::int64_t part, std::int64_t whole) {
  return whole == 0 ? "" : percent(static_cast<double>(part) / static_cast<double>(whole));
}

double ratio(std::int64_t part, std::int64_t whole) {
  return whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
}

bool any(const TraceAttribution& attribution, WorkClass work) {
  return std::any_of(attribution.devices.begin(), attribution.devices.end(),
                     [&](const DeviceAttribution& device) { return device.part(work) > 0; });
}

Table partition_table(const TraceAttribution& attribution) {
  Table table;
  table.caption = "Where the time went: the parts of a row sum to its span";
  table.columns = {{"rank"},
                   {"span", true},
                   {"compute", true},
                   {"exposed comm.", true},
                   {"exposed memory", true},
                   {"idle", true}};
  const bool fused = any(attribution, WorkClass::fused);
  const bool unclear = any(attribution, WorkClass::unclear);
  const bool sync = any(attribution, WorkClass::sync);
  for (const auto& [shown, title] :
       {std::pair(fused, "fused"), std::pair(unclear, "unclear"), std::pair(sync, "sync")}) {
    if (shown) {
      table.columns.push_back({title, true});
    }
  }
  table.columns.insert(table.columns.end(),
                       {{"all comm.", true}, {"overlapped", true}, {"overlap", true}});
  for (const DeviceAttribution& device : attribution.devices) {
    std::vector<Cell> row = {label(device),
                             us_exact(device.span_ns()),
                             us_exact(device.part(WorkClass::compute)),
                             us_exact(device.exposed_ns()),
                             us_exact(device.part(WorkClass::memory)),
                             us_exact(device.idle.total_ns)};
    row[3].bar = ratio(device.exposed_ns(), device.span_ns());
    row[3].strong = true;
    for (const auto& [shown, work] :
         {std::pair(fused, WorkClass::fused), std::pair(unclear, WorkClass::unclear),
          std::pair(sync, WorkClass::sync)}) {
      if (shown) {
        row.emplace_back(us_exact(device.part(work)));
      }
    }
    row.emplace_back(us_exact(device.all(WorkClass::communication)));
    row.emplace_back(us_exact(device.overlap_ns));
    row.emplace_back(device.all(WorkClass::communication) == 0 ? std::string("none")
                                                               : percent(device.overlap_share()));
    table.rows.push_back(std::move(row));
  }
  return table;
}

Table idle_table(const TraceAttribution& attribution) {
  Table table;
  table.caption =
      "Idle: until the launching call returned (launch-bound), after it (dependency or launch "
      "latency), or without a call in the trace (unknown)";
  table.columns = {{"rank"},
                   {"idle", true},
                   {"launch-bound", true},
                   {"dependency-bound", true},
                   {"unknown", true}};
  for (const DeviceAttribution& device : attribution.devices) {
    table.rows.push_back({label(device), us_exact(device.idle.total_ns),
                          us_exact(device.idle.launch_ns), us_exact(device.idle.dependency_ns),
                          us_exact(device.idle.unknown_ns)});
  }
  return table;
}

Table kernel_table(const TraceAttribution& attribution, const std::string& caption,
                   std::vector<KernelRow> DeviceAttribution::*rows) {
  Table table;
  table.caption = caption;
  const bool beside = rows == &DeviceAttribution::communication;
  table.columns = {{"rank"}, {"kernel"}, {"launches", true}, {"total", true}};
  if (beside) {
    table.columns.insert(table.columns.end(),
                         {{"exposed", true}, {"exposed share", true}, {"mostly beside"}});
  }
  for (const DeviceAttribution& device : attribution.devices) {
    for (const KernelRow& row : device.*rows) {
      std::vector<Cell> cells = {label(device), shortened(row.name), count(row.count),
                                 us_exact(row.total_ns)};
      cells[1].code = true;
      if (beside) {
        cells.emplace_back(us_exact(row.exposed_ns));
        cells.emplace_back(share(row.exposed_ns, row.total_ns));
        cells.emplace_back(row.beside.empty() ? std::string("nothing that computes")
                                              : shortened(row.beside.front().name));
        cells.back().code = !row.beside.empty();
      }
      table.rows.push_back(std::move(cells));
    }
  }
  return table;
}

Table skew_table(const TraceAttribution& attribution) {
  Table table;
  table.caption =
      "Arrival skew: the k-th launches on all ranks belong together; a rank waits from its own "
      "arrival to the last one's";
  table.columns = {{"kernel"},     {"rank"},           {"launches", true},      {"mean skew", true},
                   {"wait", true}, {"transfer", true}, {"last to arrive", true}};
  for (const analysis::SkewRow& row : attribution.skew) {
    for (std::size_t i = 0; i < attribution.devices.size(); ++i) {
      std::vector<Cell> cells = {
          i == 0 ? shortened(row.name) : std::string(),
          label(attribution.devices[i]),
          count(row.launches),
          us_exact(row.total_skew_ns / std::max<std::int64_t>(1, row.launches)),
          us_exact(row.wait_ns[i]),
          us_exact(row.transfer_ns[i]),
          count(row.last[i])};
      cells[0].code = i == 0;
      table.rows.push_back(std::move(cells));
    }
  }
  return table;
}

Table stream_table(const TraceAttribution& attribution) {
  Table table;
  table.caption = "Streams: busy is the time in which anything runs on the stream";
  table.columns = {{"rank"},
                   {"stream"},
                   {"slices", true},
                   {"busy", true},
                   {"comm.", true},
                   {"exposed comm.", true},
                   {"overlapping slices", true}};
  for (const DeviceAttribution& device : attribution.devices) {
    if (device.in_kernel_records) {
      continue;  // its rows are blocks
    }
    for (const analysis::StreamRow& row : device.streams) {
      table.rows.push_back({label(device), fmt::format("{}", row.stream), count(row.slices),
                            us_exact(row.busy_ns), us_exact(row.communication_ns),
                            us_exact(row.exposed_ns), count(row.overlapping)});
    }
  }
  return table;
}

Table range_table(const TraceAttribution& attribution, const std::string& caption,
                  std::vector<RangeRow> DeviceAttribution::*rows) {
  Table table;
  table.caption = caption;
  table.columns = {{"rank"},          {"name"},        {"ranges", true},       {"slices", true},
                   {"compute", true}, {"comm.", true}, {"exposed comm.", true}};
  for (const DeviceAttribution& device : attribution.devices) {
    for (const RangeRow& row : device.*rows) {
      table.rows.push_back({label(device), shortened(row.name), count(row.ranges),
                            count(row.slices), us_exact(row.compute_ns),
                            us_exact(row.communication_ns), us_exact(row.exposed_ns)});
    }
  }
  return table;
}

}  // namespace

std::vector<Table> trace_tables(const TraceAttribution& attribution, std::size_t rows) {
  std::vector<Table> tables = {
      partition_table(attribution),
      idle_table(attribution),
      kernel_table(attribution, "Communication kernels: exposed where nothing computes beside",
                   &DeviceAttribution::communication),
      kernel_table(attribution, "Fused kernels: communication and computation in one",
                   &DeviceAttribution::fused),
      kernel_table(attribution, "Kernels that look like communication, and no rule says so",
                   &DeviceAttribution::unclear),
      skew_table(attribution),
      stream_table(attribution),
      range_table(attribution, "Ranges: what was launched inside them (sums of durations)",
                  &DeviceAttribution::ranges),
      range_table(attribution, "Profiler steps: what was launched inside them (sums of durations)",
                  &DeviceAttribution::steps)};
  std::erase_if(tables, [](const Table& table) { return table.empty(); });
  for (Table& table : tables) {
    table.shown = std::max(rows, attribution.devices.size());
  }
  return tables;
}

std::string to_text(const Table& table, std::size_t rows) {
  const std::size_t shown = std::min({rows, table.shown, table.rows.size()});
  std::vector<std::size_t> widths;
  const auto width = [](const std::string& text) {  // in characters
    return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), [](char c) {
      return (static_cast<unsigned char>(c) & 0xc0) != 0x80;
    }));
  };
  for (std::size_t column = 0; column < table.columns.size(); ++column) {
    widths.push_back(width(table.columns[column].name));
    for (std::size_t row = 0; row < shown; ++row) {
      widths.back() = std::max(widths.back(), width(table.rows[row][column].text));
    }
  }
  std::string out = table.caption + "\n";
  const auto line = [&](const auto& text_of) {
    std::string built;
    for (std::size_t column = 0; column < table.columns.size(); ++column) {
      const std::string& text = text_of(column);
      const std::string blank(widths[column] - width(text), ' ');
      built += (table.columns[column].numeric ? "  " + blank + text : "  " + text + blank);
    }
    built.resize(built.find_last_not_of(' ') + 1);
    out += built + "\n";
  };
  line([&](std::size_t column) -> const std::string& { return table.columns[column].name; });
  for (std::size_t row = 0; row < shown; ++row) {
    line([&](std::size_t column) -> const std::string& { return table.rows[row][column].text; });
  }
  if (shown < table.rows.size()) {
    out += fmt::format("  {} more rows (--rows)\n", table.rows.size() - shown);
  }
  return out;
}

}  // namespace fusescope::reports
