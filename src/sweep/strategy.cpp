#include "sweep/strategy.hpp"

namespace fusescope::sweep {

std::unique_ptr<Strategy> make_strategy(const Search& search, const SearchSpace& space) {
  switch (search.kind) {
    case SearchKind::random:
      return make_random(space, search.seed);
    case SearchKind::grid:
      break;
  }
  return make_grid(space);
}

}  // namespace fusescope::sweep
