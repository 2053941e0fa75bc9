#pragma once
// What the writers of Chrome trace event JSON share: text that is written out in pieces, and the commas
// between the entries of its one long list. For the .cpp files of writers.

#include <fmt/format.h>

#include <iterator>
#include <nlohmann/json.hpp>
#include <ostream>
#include <string>
#include <string_view>
#include <utility>

namespace fusescope::timeline {

// In quotes; bytes that are not UTF-8 become the replacement character.
inline std::string quoted_json(std::string_view text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

class JsonEntries {
 public:
  explicit JsonEntries(std::ostream& out) : out_(out) {}

  template <typename... Args>
  void add(fmt::format_string<Args...> format, Args&&... args) {
    fmt::format_to(std::back_inserter(buffer_), format, std::forward<Args>(args)...);
  }
  void text(std::string_view text) { buffer_ += text; }

  // What is added next is the list's next entry.
  void next() {
    constexpr std::size_t kPiece = 1 << 16;
    if (buffer_.size() > kPiece) {
      flush();
    }
    buffer_ += first_ ? "\n" : ",\n";
    first_ = false;
  }

  // At the end: what is still held.
  void flush() {
    out_.write(buffer_.data(), static_cast<std::streamsize>(buffer_.size()));
    buffer_.clear();
  }

 private:
  std::ostream& out_;
  std::string buffer_;
  bool first_ = true;
};

}  // namespace fusescope::timeline
