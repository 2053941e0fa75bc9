#pragma once
// Small traces made by hand, and the folder of real ones.

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <string>

#include "timeline/import/read_trace.hpp"

namespace fusescope::timeline::test {

// A real trace, or "" where the folder is absent. FUSESCOPE_TRACES, or ../shared/traces.
inline std::string real_trace(const std::string& name) {
  const char* folder = std::getenv("FUSESCOPE_TRACES");
  const std::filesystem::path path =
      (folder != nullptr ? std::filesystem::path(folder)
                         : std::filesystem::path(FUSESCOPE_TEST_SOURCE_DIR) / "../shared/traces") /
      name;
  return std::filesystem::exists(path) ? path.string() : "";
}

inline Trace read_text(const std::string& text) {
  return read_trace("test.json", text.data(), text.size());
}

// A complete event; times in us as they shall stand in the file.
inline std::string slice(const std::string& category, const std::string& name,
                         const std::string& ts, const std::string& dur, int stream,
                         int correlation = 0) {
  const std::string args =
      correlation == 0 ? "" : ",\"correlation\":" + std::to_string(correlation);
  const bool gpu = category != "cuda_runtime" && category != "user_annotation";
  return "{\"ph\":\"X\",\"cat\":\"" + category + "\",\"name\":\"" + name +
         "\",\"pid\":" + (gpu ? "0" : "10") + ",\"tid\":" + std::to_string(stream) +
         ",\"ts\":" + ts + (dur.empty() ? "" : ",\"dur\":" + dur) + ",\"args\":{" +
         (gpu            ? "\"device\":0,\"stream\":" + std::to_string(stream) + args
          : args.empty() ? ""
                         : args.substr(1)) +
         "}}";
}

template <typename... Events>
std::string trace_of(const Events&... events) {
  std::string list;
  ((list += (list.empty() ? "" : ",\n") + std::string(events)), ...);
  return "{\"traceEvents\":[" + list + "]}";
}

inline bool has_note(const Trace& trace, const std::string& part) {
  for (const std::string& note : trace.notes) {
    if (note.find(part) != std::string::npos) {
      return true;
    }
  }
  return false;
}

}  // namespace fusescope::timeline::test
