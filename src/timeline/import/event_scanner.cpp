#include "timeline/import/event_scanner.hpp"

#include <bit>
#include <cstring>
#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#include "base/error.hpp"

namespace fusescope::timeline {
namespace {

constexpr std::size_t kBlock = 64;
constexpr std::size_t kNone = std::string::npos;

// Bit i: whether byte i of the block is `wanted`.
#if defined(__SSE2__)
class Block {
 public:
  explicit Block(const char* bytes) {
    for (int i = 0; i < 4; ++i) {
      parts_[i] = _mm_loadu_si128(reinterpret_cast<const __m128i*>(bytes) + i);
    }
  }
  std::uint64_t equal(char wanted) const {
    const __m128i all = _mm_set1_epi8(wanted);
    std::uint64_t mask = 0;
    for (int i = 0; i < 4; ++i) {
      const auto bits = static_cast<unsigned>(_mm_movemask_epi8(_mm_cmpeq_epi8(parts_[i], all)));
      mask |= std::uint64_t{bits} << (16 * i);
    }
    return mask;
  }

 private:
  __m128i parts_[4];
};
#else
class Block {
 public:
  explicit Block(const char* bytes) : bytes_(bytes) {}
  std::uint64_t equal(char wanted) const {
    std::uint64_t mask = 0;
    for (std::size_t i = 0; i < kBlock; ++i) {
      mask |= std::uint64_t{bytes_[i] == wanted} << i;
    }
    return mask;
  }

 private:
  const char* bytes_;
};
#endif

// Bit i: the exclusive-or of bits 0 to i.
std::uint64_t running_xor(std::uint64_t bits) {
  for (int shift = 1; shift < 64; shift *= 2) {
    bits ^= bits << shift;
  }
  return bits;
}

// Which bytes of successive blocks are inside strings.
class Strings {
 public:
  // Bytes between quotes, the opening one included.
  std::uint64_t inside(std::uint64_t quotes, std::uint64_t backslashes) {
    if (backslashes != 0 || escaped_) {
      quotes &= ~escaped(backslashes);
    }
    const std::uint64_t mask = running_xor(quotes) ^ open_;
    open_ = (mask >> 63) != 0 ? ~std::uint64_t{0} : 0;
    return mask;
  }

 private:
  // Bytes behind an odd run of backslashes.
  std::uint64_t escaped(std::uint64_t backslashes) {
    std::uint64_t result = escaped_ ? 1 : 0;
    std::uint64_t left = backslashes;
    if (escaped_) {
      left &= ~std::uint64_t{1};
    }
    escaped_ = false;
    while (left != 0) {
      const int at = std::countr_zero(left);
      left &= left - 1;
      if (at == 63) {
        escaped_ = true;
        break;
      }
      result |= std::uint64_t{1} << (at + 1);
      left &= ~(std::uint64_t{1} << (at + 1));
    }
    return result;
  }

  std::uint64_t open_ = 0;
  bool escaped_ = false;
};

bool is_space(char c) {
  return c == ' ' || c == '\n' || c == '\r' || c == '\t';
}

}  // namespace

EventScanner::EventScanner(ByteSource& source, std::string file)
    : source_(source),
      file_(std::move(file)),
      window_(std::make_unique_for_overwrite<char[]>(kWindow + kPadding)) {
  find_array();
}

bool EventScanner::more() {
  if (keep_ > 0) {
    std::memmove(window_.get(), window_.get() + keep_, filled_ - keep_);
    window_offset_ += keep_;
    filled_ -= keep_;
    position_ -= keep_;
    event_begin_ = 0;
    keep_ = 0;
  }
  if (filled_ == capacity_) {
    if (capacity_ >= kLongestEvent) {
      throw InputError({file_, "byte " + std::to_string(window_offset_),
                        "one event is longer than " + std::to_string(kLongestEvent >> 20) + " MiB",
                        "a trace of events"});
    }
    auto wider = std::make_unique_for_overwrite<char[]>(capacity_ * 2 + kPadding);
    std::memcpy(wider.get(), window_.get(), filled_);
    window_ = std::move(wider);
    capacity_ *= 2;
  }
  const std::size_t got = source_.read(window_.get() + filled_, capacity_ - filled_);
  filled_ += got;
  return got > 0;
}

// Walks the head byte by byte: to `"traceEvents": [` at depth 1, or to a bare array's '['.
void EventScanner::find_array() {
  int depth = 0;
  bool in_string = false;
  bool escaped = false;
  bool key_matches = false;  // the last string at depth 1 is the array's name
  std::string text;          // of the string being read, at depth 1
  static constexpr std::string_view kKey = "traceEvents";
  while (true) {
    if (position_ == filled_) {
      head_.append(window_.get() + keep_, filled_ - keep_);
      keep_ = filled_;
      if (head_.size() > kLongestRest || !more()) {
        break;
      }
    }
    const char c = window_[position_++];
    if (in_string) {
      if (escaped) {
        escaped = false;
      } else if (c == '\\') {
        escaped = true;
      } else if (c == '"') {
        in_string = false;
        key_matches = depth == 1 && text == kKey;
        continue;
      }
      if (depth == 1 && text.size() <= kKey.size()) {
        text += c;
      }
      continue;
    }
    switch (c) {
      case '"':
        in_string = true;
        text.clear();
        break;
      case '{':
        ++depth;
        break;
      case '}':
      case ']':
        --depth;
        break;
      case '[':
        if (depth == 0 || (depth == 1 && key_matches)) {
          array_found_ = true;
          head_.append(window_.get() + keep_, position_ - keep_);
          keep_ = position_;
          if (depth == 0) {
            head_.assign("{\"traceEvents\":[");
          }
          return;
        }
        ++depth;
        break;
      case ',':
        key_matches = false;
        break;
      default:
        break;
    }
  }
  if (!source_.damage().empty()) {
    throw InputError({file_, "", source_.damage() + ", before its first event", "a whole trace"});
  }
  throw InputError({file_, "byte " + std::to_string(bytes()), "has no array \"traceEvents\"",
                    "a trace of the PyTorch profiler, or another file of Chrome trace events"});
}

std::size_t EventScanner::end_of_object() {
  // Positions are relative to the event's begin, so that they survive more().
  Strings strings;
  std::size_t at = 0;
  std::int64_t depth = 0;
  while (true) {
    const std::size_t available = filled_ - event_begin_;
    if (at + kBlock > available) {
      if (more()) {
        continue;
      }
      if (at >= available) {
        return kNone;
      }
      // The last, partial block: what is behind the end must not look like JSON.
      std::memset(window_.get() + filled_, ' ', kPadding);
    }
    const Block block(window_.get() + event_begin_ + at);
    const std::uint64_t inside = strings.inside(block.equal('"'), block.equal('\\'));
    const std::uint64_t opens = block.equal('{') & ~inside;
    const std::uint64_t closes = block.equal('}') & ~inside;
    for (std::uint64_t braces = opens | closes; braces != 0; braces &= braces - 1) {
      const std::uint64_t bit = braces & (~braces + 1);
      depth += (opens & bit) != 0 ? 1 : -1;
      if (depth == 0) {
        return event_begin_ + at + static_cast<std::size_t>(std::countr_zero(bit)) + 1;
      }
    }
    at += kBlock;
  }
}

std::string_view EventScanner::next() {
  if (ended_) {
    return {};
  }
  while (true) {
    keep_ = position_;
    if (position_ == filled_ && !more()) {
      finish(false);
      return {};
    }
    const char c = window_[position_];
    if (is_space(c) || c == ',') {
      ++position_;
      continue;
    }
    if (c == ']') {
      ++position_;
      finish(true);
      return {};
    }
    if (c != '{') {
      loss_ = "is not a list of events from byte " + std::to_string(window_offset_ + position_) +
              " on; what follows is lost";
      ended_ = true;
      return {};
    }
    event_begin_ = position_;
    const std::size_t end = end_of_object();
    if (end == kNone) {
      finish(false);
      return {};
    }
    position_ = end;
    return {window_.get() + event_begin_, end - event_begin_};
  }
}

void EventScanner::finish(bool whole) {
  ended_ = true;
  if (!whole) {
    const bool inside = position_ < filled_;
    loss_ = (source_.damage().empty()
                 ? "the file ends at byte " + std::to_string(bytes())
                 : source_.damage() + " (" + std::to_string(bytes()) + " bytes unpacked)") +
            (inside ? ", inside an event: that event and all behind it are lost"
                    : ", inside the list of events: what stood behind is lost");
    return;
  }
  tail_.assign(1, ']');
  keep_ = position_;
  while (tail_.size() < kLongestRest) {
    tail_.append(window_.get() + keep_, filled_ - keep_);
    keep_ = position_ = filled_;
    if (!more()) {
      break;
    }
  }
  if (!source_.damage().empty()) {
    loss_ = source_.damage() + ", behind the list of events";
  }
}

std::string EventScanner::rest() {
  return head_ + (tail_.empty() ? "]}" : tail_);
}

}  // namespace fusescope::timeline
