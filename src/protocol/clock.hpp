#pragma once
// Vector clocks: what a thread knows to have happened. A component counts the epochs of one thread, or of
// one queue of bulk copies; an access at (component, tick) happened before whoever's clock holds at least
// that tick there.

#include <algorithm>
#include <array>
#include <cstdint>

namespace fusescope::protocol {

using Tick = std::int16_t;  // signed: SSE2 has a packed maximum for it
using Component = std::int16_t;

inline constexpr int kMostComponents = 512;

// All clocks of a machine have the same width in use; what lies behind it is never looked at.
struct Clock {
  std::array<Tick, kMostComponents> at;

  void clear(int width) { std::fill_n(at.begin(), width, Tick{0}); }
  void copy(const Clock& from, int width) { std::copy_n(from.at.begin(), width, at.begin()); }
  void join(const Clock& from, int width) {
    for (int i = 0; i < width; ++i) {
      at[i] = std::max(at[i], from.at[i]);
    }
  }
  bool holds(Component component, Tick tick) const { return at[component] >= tick; }
  void raise(Component component, Tick tick) { at[component] = std::max(at[component], tick); }
};

}  // namespace fusescope::protocol
