#include "cli/attribute_trace.hpp"

#include <cstdio>
#include <filesystem>
#include <set>

#include "analysis/trace/attribution.hpp"
#include "base/error.hpp"
#include "cli/command.hpp"
#include "reports/trace/trace_report.hpp"
#include "timeline/import/read_trace.hpp"

namespace fusescope::cli {
namespace {

void print(const analysis::TraceAttribution& attribution,
           const std::vector<timeline::Trace>& traces, std::size_t rows) {
  for (const timeline::Trace& trace : traces) {
    std::printf("%s: %s%s%s, %zu GPU slices, %zu host slices\n", trace.file.c_str(),
                trace.source.c_str(), trace.device_name.empty() ? "" : " on ",
                trace.device_name.c_str(), trace.gpu.size(), trace.host.size());
  }
  std::printf("rules %s; times in us\n", attribution.rules.c_str());
  for (const reports::Table& table : reports::trace_tables(attribution, rows)) {
    std::printf("\n%s", reports::to_text(table, rows).c_str());
  }
  for (const std::string& finding : reports::trace_findings(attribution)) {
    std::printf("\n%s\n", finding.c_str());
  }
  for (const std::string& note : attribution.notes) {
    std::printf("\nnote: %s\n", note.c_str());
  }
}

}  // namespace

bool is_foreign_trace(const std::string& path) {
  return !std::filesystem::is_directory(path) && timeline::trace_format(path).has_value();
}

int attribute_trace(const TraceOptions& options) {
  const analysis::Rules rules = analysis::load_rules(options.rules);
  std::vector<timeline::Trace> traces;
  std::set<std::string> seen;
  for (const std::string& file : options.files) {
    std::error_code error;
    if (!seen.insert(std::filesystem::weakly_canonical(file, error).string()).second) {
      throw InputError({file, "", "is given twice", "each rank's trace once"});
    }
    traces.push_back(timeline::read_trace(file));
  }
  const analysis::TraceAttribution attribution = analysis::attribute_traces(traces, rules);
  for (const analysis::DeviceAttribution& device : attribution.devices) {
    if (const std::string failure = analysis::check_closing(device); !failure.empty()) {
      throw CheckFailure(device.file + ": " + failure);
    }
  }
  const auto rows = static_cast<std::size_t>(options.rows);
  if (options.json) {
    std::printf("%s\n", analysis::to_json(attribution, traces, rows).c_str());
  } else {
    print(attribution, traces, rows);
  }
  if (!options.report.empty()) {
    for (const std::string& path :
         reports::write_trace_report(attribution, traces, options.command, options.report)) {
      std::fprintf(stderr, "Written: %s\n", path.c_str());
    }
  }
  return kFine;
}

}  // namespace fusescope::cli
