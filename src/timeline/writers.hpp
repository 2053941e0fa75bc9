#pragma once
// Timelines for viewers: one function per format, one table of formats.
//
// Writers take any timeline whose indices are safe (load_timeline's are); slices that overlap on a
// track are drawn wrongly, so check() first what is not known to be sound. Times are relative to
// the timeline's earliest event.

#include <ostream>
#include <span>
#include <string>
#include <string_view>

#include "timeline/timeline.hpp"

namespace fusescope::timeline {

// Perfetto protobuf (ui.perfetto.dev, trace_processor): process = rank, thread = block, lanes below
// their block, flow arrows along the waits (flows.hpp), counter tracks.
void write_perfetto(const Timeline& timeline, std::ostream& out);

// Chrome trace event JSON (ui.perfetto.dev, chrome://tracing, catapult): the same content, for
// tools that read JSON. Times in microseconds with three decimals.
void write_chrome(const Timeline& timeline, std::ostream& out);

// An export of Nsight Systems as SQLite (nsys_writer.cpp says what stands for what), for the tools that
// read those.
void write_nsys_sqlite(const Timeline& timeline, std::ostream& out);

struct Format {
  std::string_view name;       // --format NAME
  std::string_view extension;  // ".pftrace"
  std::string_view meaning;    // one line for --help
  void (*write)(const Timeline& timeline, std::ostream& out);
};
std::span<const Format> formats();

// Throws InputError naming `option` and what would be accepted.
const Format& find_format(std::string_view name, const std::string& option = "--format");
// The format that a path's extension says, or nullptr.
const Format* format_of_path(std::string_view path);

// Throws InputError if the file cannot be written; what was at `path` before is then still there.
void write_timeline(const Timeline& timeline, const std::string& path, const Format& format);

}  // namespace fusescope::timeline
