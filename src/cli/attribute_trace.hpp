#pragma once
// fusescope attribute of traces that other tools recorded.

#include <string>
#include <vector>

namespace fusescope::cli {

struct TraceOptions {
  std::vector<std::string> files;  // one job's ranks, or one file
  std::string rules = "default";   // "default", "hta" or a file
  std::string report;              // folder for report.md and report.html; "" = none
  std::string command;             // the command line, for the report
  int rows = 20;
  bool json = false;
};

// Whether the file is a trace of another tool (JSON or SQLite, gzip or not). Throws InputError if it
// cannot be read.
bool is_foreign_trace(const std::string& path);

// Prints the attribution; returns the exit code. Throws InputError.
int attribute_trace(const TraceOptions& options);

}  // namespace fusescope::cli
