#pragma once
// Any trace of another tool, by what the file holds.

#include <optional>
#include <string>

#include "timeline/import/trace.hpp"

namespace fusescope::timeline {

enum class TraceFormat { json, sqlite };

// By the first bytes, unpacked where the file is gzip; nullopt: neither. Throws InputError if the file
// cannot be read.
std::optional<TraceFormat> trace_format(const std::string& path);

// Throws InputError: unreadable, neither format, or nothing in it that could be read.
Trace read_trace(const std::string& path);

// The same for bytes in memory.
Trace read_trace(const std::string& name, const char* bytes, std::size_t size);

}  // namespace fusescope::timeline
