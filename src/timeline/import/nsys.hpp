#pragma once
// Nsight Systems exports (`nsys export --type sqlite`), plain or gzip: kernels, copies, memsets, whole
// CUDA graphs, runtime calls, NVTX ranges, of several devices and processes. What a version of the
// schema lacks (tables are written only where there is something to write) is left out.

#include <string>

#include "timeline/import/sqlite_table.hpp"
#include "timeline/import/trace.hpp"

namespace fusescope::timeline {

// Throws InputError: a damaged file, or one without CUDA activity.
Trace read_nsys(SqliteFile& database);

}  // namespace fusescope::timeline
