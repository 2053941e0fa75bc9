#pragma once
// Inside the sweep library: a shuffle that is equal on every machine.

#include <utility>
#include <vector>

#include "base/random.hpp"

namespace fusescope::sweep {

template <typename Value>
void shuffle(std::vector<Value>& values, Random& random) {
  for (std::size_t left = values.size(); left > 1; --left) {
    std::swap(values[left - 1], values[static_cast<std::size_t>(random.below(left))]);
  }
}

}  // namespace fusescope::sweep
