#pragma once
// A strategy proposes the configs of a sweep, one at a time, and is told what came of each.
// Strategies that learn (local search, racing, a simulator's ranking) fit behind the same
// interface: what they propose may depend on what they were told, and a resumed sweep tells them
// its logged trials again.

#include <memory>
#include <optional>

#include "sweep/search_space.hpp"
#include "sweep/trial.hpp"

namespace fusescope::sweep {

class Strategy {
 public:
  virtual ~Strategy() = default;
  // The next config that the constraints allow; nothing when the space is exhausted. Called from
  // one thread at a time. The n-th proposal of two equal sweeps is the same.
  virtual std::optional<Config> next() = 0;
  virtual void tell(const Trial& trial) = 0;
};

// In the space's order.
std::unique_ptr<Strategy> make_grid(const SearchSpace& space);
// Each config at most once, in an order that the seed decides, equal on every machine.
std::unique_ptr<Strategy> make_random(const SearchSpace& space, std::uint64_t seed);

std::unique_ptr<Strategy> make_strategy(const Search& search, const SearchSpace& space);

}  // namespace fusescope::sweep
