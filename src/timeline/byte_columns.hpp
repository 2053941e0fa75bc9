#pragma once
// Columns of integers as variable-length bytes: each value as the difference from a prediction,
// zigzag folded, seven bits a byte. Every 64-bit value survives; reading never leaves the bytes
// that it was given.

#include <bit>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "base/error.hpp"

namespace fusescope::timeline {

class ColumnWriter {
 public:
  // `value` and `prediction` may be any 64-bit values: the difference wraps around.
  void difference(std::int64_t value, std::int64_t prediction) {
    const auto wrapped = static_cast<std::int64_t>(static_cast<std::uint64_t>(value) -
                                                   static_cast<std::uint64_t>(prediction));
    auto folded =
        (static_cast<std::uint64_t>(wrapped) << 1) ^ static_cast<std::uint64_t>(wrapped >> 63);
    while (folded >= 0x80) {
      bytes_.push_back(static_cast<char>((folded & 0x7f) | 0x80));
      folded >>= 7;
    }
    bytes_.push_back(static_cast<char>(folded));
  }

  void number(double value) {
    const auto bits = std::bit_cast<std::uint64_t>(value);
    for (int shift = 0; shift < 64; shift += 8) {
      bytes_.push_back(static_cast<char>((bits >> shift) & 0xff));
    }
  }

  void text(std::string_view value) { bytes_.append(value); }

  std::string take() { return std::move(bytes_); }

 private:
  std::string bytes_;
};

// Every read names the column it is in, so that an error can.
class ColumnReader {
 public:
  ColumnReader(std::string_view bytes, std::string file) : bytes_(bytes), file_(std::move(file)) {}

  void enter(std::string column) { column_ = std::move(column); }
  std::size_t left() const { return bytes_.size() - at_; }

  std::int64_t difference(std::int64_t prediction) {
    std::uint64_t folded = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      if (at_ == bytes_.size()) {
        refuse("ends in the middle of a value");
      }
      const auto byte = static_cast<std::uint8_t>(bytes_[at_++]);
      folded |= static_cast<std::uint64_t>(byte & 0x7f) << shift;
      if (byte < 0x80) {
        const std::uint64_t wrapped = (folded >> 1) ^ (~(folded & 1) + 1);
        return static_cast<std::int64_t>(wrapped + static_cast<std::uint64_t>(prediction));
      }
    }
    refuse("a value is longer than 64 bits");
  }

  // A value that must lie in [least, most].
  std::int64_t difference(std::int64_t prediction, std::int64_t least, std::int64_t most) {
    const std::int64_t value = difference(prediction);
    if (value < least || value > most) {
      refuse(std::to_string(value) + " is out of range",
             std::to_string(least) + " to " + std::to_string(most));
    }
    return value;
  }

  double number() {
    if (left() < 8) {
      refuse("ends in the middle of a value");
    }
    std::uint64_t bits = 0;
    for (int shift = 0; shift < 64; shift += 8) {
      bits |= static_cast<std::uint64_t>(static_cast<std::uint8_t>(bytes_[at_++])) << shift;
    }
    return std::bit_cast<double>(bits);
  }

  [[noreturn]] void refuse(const std::string& problem, const std::string& accepted = "") const {
    throw InputError({file_, column_ + ", content byte " + std::to_string(at_), problem, accepted});
  }

 private:
  std::string_view bytes_;
  std::string file_;
  std::string column_;
  std::size_t at_ = 0;
};

}  // namespace fusescope::timeline
