#pragma once
// The reports that a sweep's folder can be told to have.

#include <cstdio>
#include <string>

namespace fusescope::cli {

// Writes report.html, report.md and, where the winner has a timeline, best.pftrace into the folder;
// lists them on `out`.
void write_sweep_reports(const std::string& folder, std::FILE* out);

}  // namespace fusescope::cli
