#pragma once
// A 64-bit FNV-1a hash that is the same on every machine: a key for logs, no protection against
// malice.

#include <cstdint>
#include <string_view>

namespace fusescope {

class StableHash {
 public:
  void add(std::string_view bytes) {
    for (const char byte : bytes) {
      add_byte(static_cast<unsigned char>(byte));
    }
    add_byte(0xff);  // so that "ab" + "c" differs from "a" + "bc"
  }
  void add(std::uint64_t value) {
    for (int shift = 0; shift < 64; shift += 8) {
      add_byte(static_cast<unsigned char>(value >> shift));
    }
  }
  std::uint64_t value() const { return state_; }

 private:
  void add_byte(unsigned char byte) { state_ = (state_ ^ byte) * 1099511628211ull; }

  std::uint64_t state_ = 14695981039346656037ull;
};

}  // namespace fusescope
