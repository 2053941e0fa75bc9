#pragma once
// Reads Perfetto traces for tests, by the published field numbers, knowing nothing of the writer. A
// field that it does not know is an error: the writer must not invent any.

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace fusescope::timeline {

struct DecodedTrack {
  std::uint64_t uuid = 0;
  std::uint64_t parent = 0;
  std::string name;
  int pid = -1;
  std::int64_t tid = -1;  // of threads
  bool is_process = false;
  bool is_counter = false;
  std::string unit;
  int order = 0;
  int process_ordering = 0;
  int thread_ordering = 0;
};

struct DecodedEvent {
  std::uint64_t time_ns = 0;
  int type = 0;  // 1 begin, 2 end, 4 counter
  std::uint64_t track = 0;
  std::string name;
  std::string category;
  std::map<std::string, std::string> annotations;
  std::vector<std::uint64_t> flows;
  std::vector<std::uint64_t> last_flows;  // terminating
  double value = 0;
};

struct DecodedTrace {
  std::vector<DecodedTrack> tracks;  // as declared, in order
  std::vector<DecodedEvent> events;  // in the file's order
  std::map<std::string, std::string> attributes;
};

// Throws std::runtime_error on what a reader could not make sense of: an unknown field, a name that
// was not interned before its use, a packet that refers to names but does not say so.
DecodedTrace decode_perfetto(std::string_view bytes);

}  // namespace fusescope::timeline
