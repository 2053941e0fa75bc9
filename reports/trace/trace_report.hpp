#pragma once
// The attribution of foreign traces as tables, findings in words, Markdown and one self-contained page.

#include <span>
#include <string>
#include <vector>

#include "analysis/trace/attribution.hpp"
#include "reports/table.hpp"

namespace fusescope::reports {

// Where the time went per device, idle, kernels, arrival skew, streams, ranges and steps; those without
// rows are left out. `rows` folds each of them.
std::vector<Table> trace_tables(const analysis::TraceAttribution& attribution, std::size_t rows);

// What the tables say, in sentences; first the verdict. Fused and unclear kernels are called out.
std::vector<std::string> trace_findings(const analysis::TraceAttribution& attribution);

// A table for a terminal.
std::string to_text(const Table& table, std::size_t rows);

std::string trace_markdown(const analysis::TraceAttribution& attribution,
                           std::span<const timeline::Trace> traces, const std::string& command);
std::string trace_html(const analysis::TraceAttribution& attribution,
                       std::span<const timeline::Trace> traces, const std::string& command);

// report.md and report.html into `folder`, which is made. Returns their paths. Throws InputError: not
// writable, or a file there that fusescope did not write.
std::vector<std::string> write_trace_report(const analysis::TraceAttribution& attribution,
                                            std::span<const timeline::Trace> traces,
                                            const std::string& command, const std::string& folder);

}  // namespace fusescope::reports
