#pragma once
// One trace event's fields, by simdjson's On-Demand parser. The only place that uses simdjson.

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

namespace fusescope::timeline {

// Texts are as they stand in the file: numbers and strings unparsed, strings with their quotes; empty
// where the event lacks the field. They point into the event's own bytes.
struct EventFields {
  std::string_view phase, category, name, ts, dur, pid, tid;
  // Of `args`.
  std::string_view device, stream, correlation, bytes, args_name;
};

class EventParser {
 public:
  // Throws InputError where simdjson's library is not installed on this machine.
  EventParser();
  ~EventParser();
  EventParser(const EventParser&) = delete;
  EventParser& operator=(const EventParser&) = delete;

  // `event` is one JSON object with at least EventScanner::kPadding readable bytes behind it. False:
  // it is not valid JSON, or not an object. Flow events stop after their phase: nothing else is set.
  bool parse(std::string_view event, EventFields& fields);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// The text of a JSON string with its quotes, escapes resolved; other tokens as they are.
std::string unquoted(std::string_view token);

}  // namespace fusescope::timeline
