#pragma once
// Random numbers that are the same on every machine: a counter-based generator and explicit
// distributions, because the standard library's distributions differ between implementations.

#include <cstdint>

namespace fusescope {

// splitmix64's finaliser: a bijection on 64 bits that passes for random.
constexpr std::uint64_t mix64(std::uint64_t value) {
  value += 0x9e3779b97f4a7c15ull;
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9ull;
  value = (value ^ (value >> 27)) * 0x94d049bb133111ebull;
  return value ^ (value >> 31);
}

// An independent stream for each (seed, stream) pair.
class Random {
 public:
  explicit constexpr Random(std::uint64_t seed, std::uint64_t stream = 0)
      : state_(mix64(mix64(seed) ^ stream)) {}

  constexpr std::uint64_t next() { return mix64(state_++); }
  // Uniform in [0, bound); bound > 0. The bias is below bound / 2^64.
  constexpr std::uint64_t below(std::uint64_t bound) {
    __extension__ using Wide = unsigned __int128;
    return static_cast<std::uint64_t>((static_cast<Wide>(next()) * bound) >> 64);
  }
  // Uniform in [0, 1), a multiple of 2^-53.
  constexpr double unit() { return static_cast<double>(next() >> 11) * 0x1.0p-53; }

 private:
  std::uint64_t state_;
};

}  // namespace fusescope
