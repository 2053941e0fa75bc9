#include "sweep/strategy.hpp"

#include <algorithm>

namespace fusescope::sweep {

std::unique_ptr<Strategy> make_strategy(const SweepConfig& config, const SearchSpace& space,
                                        const Predict& predict) {
  const Search& search = config.search;
  RaceRules rules;
  rules.full_samples = config.measure.min_samples;
  rules.first_samples = std::min(rules.first_samples, rules.full_samples);
  switch (search.kind) {
    case SearchKind::random:
      return make_random(space, search.seed);
    case SearchKind::local:
      return make_local(space, config.base, search.seed);
    case SearchKind::racing:
      return make_racing(space, config.base, rules, search.seed);
    case SearchKind::sim_guided:
      return make_sim_guided(space, rules, predict);
    case SearchKind::grid:
      break;
  }
  return make_grid(space);
}

}  // namespace fusescope::sweep
