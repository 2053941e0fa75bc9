#include "timeline/import/read_trace.hpp"

#include <string_view>

#include "base/error.hpp"
#include "timeline/import/byte_source.hpp"
#include "timeline/import/kineto.hpp"
#include "timeline/import/nsys.hpp"
#include "timeline/import/sqlite_table.hpp"

namespace fusescope::timeline {
namespace {

constexpr std::string_view kSqliteMagic = "SQLite format 3";

std::optional<TraceFormat> format_of(ByteSource& source) {
  char head[4096];
  std::size_t size = 0;
  while (size < sizeof head) {
    const std::size_t got = source.read(head + size, sizeof head - size);
    if (got == 0) {
      break;
    }
    size += got;
  }
  const std::string_view text(head, size);
  if (text.starts_with(kSqliteMagic)) {
    return TraceFormat::sqlite;
  }
  const std::size_t first = text.find_first_not_of(" \t\r\n\xef\xbb\xbf");
  if (first != std::string_view::npos && (text[first] == '{' || text[first] == '[')) {
    return TraceFormat::json;
  }
  return std::nullopt;
}

[[noreturn]] void refuse(const std::string& file) {
  throw InputError({file, "", "is neither JSON nor SQLite",
                    "a PyTorch profiler trace (.json, .json.gz) or a Nsight Systems export "
                    "(.sqlite, .sqlite.gz)"});
}

}  // namespace

std::optional<TraceFormat> trace_format(const std::string& path) {
  ByteSource source(path);
  return format_of(source);
}

Trace read_trace(const std::string& path) {
  const std::optional<TraceFormat> format = trace_format(path);
  if (!format) {
    refuse(path);
  }
  ByteSource source(path);
  if (format == TraceFormat::json) {
    return read_kineto(source, path);
  }
  if (source.compressed()) {
    SqliteFile database(source, path);
    return read_nsys(database);
  }
  SqliteFile database(path);
  return read_nsys(database);
}

Trace read_trace(const std::string& name, const char* bytes, std::size_t size) {
  ByteSource head(name, bytes, size);
  const std::optional<TraceFormat> format = format_of(head);
  if (!format) {
    refuse(name);
  }
  ByteSource source(name, bytes, size);
  if (format == TraceFormat::json) {
    return read_kineto(source, name);
  }
  SqliteFile database(source, name);
  return read_nsys(database);
}

}  // namespace fusescope::timeline
