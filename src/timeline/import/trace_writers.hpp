#pragma once
// A foreign trace for viewers: one process per device and per host process, one row per stream and per
// thread. Slices of a stream that overlap (programmatic dependent launch) go to lanes of their own.

#include <cstdint>
#include <ostream>
#include <string>
#include <string_view>
#include <vector>

#include "timeline/import/trace.hpp"

namespace fusescope::timeline {

// A row of a viewer. Its slices nest or do not overlap; on a stream they do not overlap.
struct TraceRow {
  bool gpu = false;
  std::int64_t process = 0;
  std::int64_t number = 0;  // device of a stream, thread id of a thread
  std::int64_t stream = 0;
  int lane = 0;
  std::string name;                   // "stream 7", "stream 7 lane 1", "thread 11 (main)"
  std::vector<std::uint32_t> slices;  // in Trace::gpu or Trace::host, by begin, longer first
};

// Streams by process, device and number, then threads. Every slice is in exactly one row.
std::vector<TraceRow> rows_of(const Trace& trace);

// Chrome trace event JSON, in the PyTorch profiler's categories: fusescope reads it back.
void write_trace_chrome(const Trace& trace, std::ostream& out);
// Perfetto protobuf.
void write_trace_perfetto(const Trace& trace, std::ostream& out);

// Throws InputError: a format that foreign traces are not written in, or an unwritable path.
void write_trace(const Trace& trace, const std::string& path, std::string_view format);

}  // namespace fusescope::timeline
