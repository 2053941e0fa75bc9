#pragma once
// A strategy proposes what a sweep measures next, and is told what came of each. What it proposes
// depends on nothing but its seed and what it was told, never on the order in which trials that were
// in flight together ended: so a sweep is repeatable, and one that is resumed tells the strategy its
// logged trials again.

#include <functional>
#include <memory>
#include <optional>

#include "sweep/search_space.hpp"
#include "sweep/trial.hpp"

namespace fusescope::sweep {

struct Proposal {
  Config config;
  int visit = 0;    // how often it was proposed before
  int samples = 0;  // to take exactly that many; 0 = by the sweep's rules
};

class Strategy {
 public:
  virtual ~Strategy() = default;
  // The next measurement. Nothing while the strategy waits to be told of what it proposed; nothing
  // at all once it has been told of everything: then it is done. Called from one thread at a time.
  virtual std::optional<Proposal> next() = 0;
  // Of each proposal once: kind search, its config and visit.
  virtual void tell(const Trial& trial) = 0;
};

// In the space's order.
std::unique_ptr<Strategy> make_grid(const SearchSpace& space);
// Each config at most once, in an order that the seed decides, equal on every machine.
std::unique_ptr<Strategy> make_random(const SearchSpace& space, std::uint64_t seed);
// Hill climbing: from the base config (or what the space has first), and then from random configs,
// measures all neighbours and moves to the best of them as long as that is faster.
std::unique_ptr<Strategy> make_local(const SearchSpace& space, const Config& base,
                                     std::uint64_t seed);

// Races: a field of configs gets a few samples each; who is clearly slower than the leader (their
// medians' 95% intervals do not meet) drops out, the others get more, up to `full_samples` each. The
// next field is the neighbourhood of the best, and some configs from further away. Ends once three
// races in a row brought nothing.
struct RaceRules {
  int first_samples = 5;
  int full_samples = 20;
  double min_gain = 0.002;  // relative: less is no progress
};
// Fields are drawn at random; the base config, where the axes pass through it, is in the first.
std::unique_ptr<Strategy> make_racing(const SearchSpace& space, const Config& base,
                                      const RaceRules& rules, std::uint64_t seed);
// Fields are drawn in the order of predicted walls. `predict` gets configs and returns their walls,
// NaN for one that cannot be predicted; it is called once, by the first next().
using Predict = std::function<std::vector<double>(const std::vector<Config>&)>;
std::unique_ptr<Strategy> make_sim_guided(const SearchSpace& space, const RaceRules& rules,
                                          Predict predict);

// `predict` is used by sim_guided only.
std::unique_ptr<Strategy> make_strategy(const SweepConfig& config, const SearchSpace& space,
                                        const Predict& predict);

}  // namespace fusescope::sweep
