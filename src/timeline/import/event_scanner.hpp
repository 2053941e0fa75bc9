#pragma once
// Finds the events of a trace file one after the other in a window of bounded size: the objects of the
// array `traceEvents` (or of a bare array). What stands outside the array is kept apart as the file's
// head and tail. A file that ends early yields every whole event before its end.

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "timeline/import/byte_source.hpp"

namespace fusescope::timeline {

#ifdef FUSESCOPE_FUZZING
inline constexpr std::size_t kScannerWindow = 128;  // small inputs cross its edges
#else
inline constexpr std::size_t kScannerWindow = std::size_t{1} << 20;
#endif

class EventScanner {
 public:
  // Bytes that may be read (not used) behind an event's text.
  static constexpr std::size_t kPadding = 64;
  static constexpr std::size_t kWindow = kScannerWindow;
  static constexpr std::size_t kLongestEvent = std::size_t{256} << 20;
  static constexpr std::size_t kLongestRest = std::size_t{64} << 20;

  // Reads up to the array. Throws InputError if there is none in a file that is whole.
  EventScanner(ByteSource& source, std::string file);

  // The next event's text, valid until the next call; empty at the end. Throws InputError when one
  // event is longer than kLongestEvent.
  std::string_view next();

  // Where the event that next() gave begins in the uncompressed input.
  std::uint64_t event_offset() const { return window_offset_ + event_begin_; }
  std::uint64_t bytes() const { return window_offset_ + filled_; }

  // After the end: everything outside the array, as one JSON document with an empty array.
  std::string rest();
  // "" or what was lost: "ends at byte 123, inside an event".
  const std::string& loss() const { return loss_; }

 private:
  bool more();  // slides the window and reads on; false at the end of the input
  void find_array();
  std::size_t end_of_object();  // one past the '}', or npos at the input's end
  void finish(bool whole);

  ByteSource& source_;
  std::string file_;
  std::unique_ptr<char[]> window_;
  std::size_t capacity_ = kWindow;  // without the padding
  std::size_t filled_ = 0;          // bytes in the window
  std::size_t position_ = 0;        // next byte to look at
  std::size_t keep_ = 0;            // bytes before this one are no longer needed
  std::size_t event_begin_ = 0;     // of the event that next() gave
  std::uint64_t window_offset_ = 0;
  std::string head_;
  std::string tail_;
  std::string loss_;
  bool array_found_ = false;
  bool ended_ = false;
};

}  // namespace fusescope::timeline
