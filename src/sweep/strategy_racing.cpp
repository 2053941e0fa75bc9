// Racing and sim_guided are one search with two orders: in which fields are drawn from the space.

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>

#include "sweep/rounds.hpp"
#include "sweep/shuffle.hpp"
#include "sweep/statistics.hpp"

namespace fusescope::sweep {
namespace {

constexpr std::size_t kElites = 3;
constexpr int kIdleRaces = 3;  // races without progress before the search ends

// In which order configs of the space get into the fields, and how many of them make the first.
struct Order {
  std::vector<long long> configs;
  std::size_t first = 0;
};
using MakeOrder = std::function<Order()>;

// How many configs a later field has.
struct FieldSizes {
  std::size_t near = 0;  // next to the elites
  std::size_t far = 0;   // from the order
};

class Racing : public Rounds {
 public:
  Racing(const SearchSpace& space, const RaceRules& rules, FieldSizes sizes, MakeOrder make_order)
      : space_(space), rules_(rules), sizes_(sizes), make_order_(std::move(make_order)) {}

 private:
  struct Racer {
    std::vector<double> walls;
    int visits = 0;
    int samples = 0;  // asked for
    bool failed = false;
    MedianInterval interval;
  };

  std::vector<Proposal> plan(const std::vector<Trial>& told) override {
    if (order_.configs.empty()) {
      order_ = make_order_();
      for (std::size_t place = 0; place < order_.configs.size(); ++place) {
        place_[order_.configs[place]] = place;
      }
    }
    for (std::size_t i = 0; i < told.size(); ++i) {
      take(racers_[round_[i]], told[i]);
    }
    drop_the_slow();
    round_ = next_heat();
    if (round_.empty() && goes_on()) {
      field_ = next_field();
      round_ = next_heat();
    }
    std::vector<Proposal> proposals;
    for (const long long index : round_) {
      Racer& racer = racers_[index];
      const int more = std::min(std::max(rules_.first_samples, racer.samples),
                                rules_.full_samples - racer.samples);
      proposals.push_back({space_.at(index), racer.visits++, more});
      racer.samples += more;
    }
    return proposals;
  }

  static void take(Racer& racer, const Trial& trial) {
    if (trial.verdict != Verdict::ok) {
      racer.failed = true;
      return;
    }
    const std::vector<double> walls = counted_walls(trial);
    racer.walls.insert(racer.walls.end(), walls.begin(), walls.end());
    racer.interval = median_interval(racer.walls);
  }

  double wall(long long index) const {
    const auto racer = racers_.find(index);
    return racer == racers_.end() || racer->second.failed || racer->second.walls.empty()
               ? std::numeric_limits<double>::infinity()
               : racer->second.interval.median;
  }

  // Best first; equal ones in the fields' order.
  std::vector<long long> ranked() const {
    std::vector<long long> all;
    for (const auto& [index, racer] : racers_) {
      if (std::isfinite(wall(index))) {
        all.push_back(index);
      }
    }
    std::sort(all.begin(), all.end(), [&](long long a, long long b) {
      return std::pair(wall(a), place_.at(a)) < std::pair(wall(b), place_.at(b));
    });
    return all;
  }

  // The leader of the whole search holds the line, not only that of the field.
  void drop_the_slow() {
    const std::vector<long long> all = ranked();
    std::erase_if(field_, [&](long long index) {
      const Racer& racer = racers_[index];
      return racer.failed || (racer.visits > 0 && !all.empty() &&
                              racer.interval.low > racers_[all.front()].interval.high);
    });
  }

  // Those of the field that still want samples.
  std::vector<long long> next_heat() {
    std::vector<long long> heat;
    std::copy_if(field_.begin(), field_.end(), std::back_inserter(heat),
                 [&](long long index) { return racers_[index].samples < rules_.full_samples; });
    return heat;
  }

  bool goes_on() {
    const std::vector<long long> all = ranked();
    const double best = all.empty() ? std::numeric_limits<double>::infinity() : wall(all.front());
    if (!std::isfinite(best)) {
      ++races_;
      return true;  // nothing has run so far: the fields go on to the end of the order
    }
    idle_races_ =
        races_++ > 0 && !(best < best_before_ * (1 - rules_.min_gain)) ? idle_races_ + 1 : 0;
    best_before_ = std::min(best_before_, best);
    return idle_races_ < kIdleRaces;
  }

  std::vector<long long> next_field() {
    const std::vector<long long> all = ranked();
    std::set<std::pair<std::size_t, long long>> near;  // by place in the order
    for (std::size_t i = 0; i < std::min(kElites, all.size()); ++i) {
      for (const long long index : space_.neighbours(all[i])) {
        if (place_.contains(index) && !racers_.contains(index)) {
          near.emplace(place_.at(index), index);
        }
      }
    }
    std::vector<long long> field;
    for (const auto& [place, index] : near) {
      if (field.size() < sizes_.near) {
        field.push_back(index);
      }
    }
    const std::size_t fresh = races_ == 1 ? order_.first : sizes_.far;
    for (std::size_t drawn = 0; drawn < fresh && cursor_ < order_.configs.size(); ++cursor_) {
      const long long index = order_.configs[cursor_];
      if (!racers_.contains(index) && std::find(field.begin(), field.end(), index) == field.end()) {
        field.push_back(index);
        ++drawn;
      }
    }
    return field;
  }

  const SearchSpace& space_;
  RaceRules rules_;
  FieldSizes sizes_;
  MakeOrder make_order_;
  Order order_;
  std::map<long long, std::size_t> place_;
  std::size_t cursor_ = 0;  // in the order
  std::map<long long, Racer> racers_;
  std::vector<long long> field_;  // of the race that is on
  std::vector<long long> round_;
  int races_ = 0;
  int idle_races_ = 0;
  double best_before_ = std::numeric_limits<double>::infinity();
};

std::size_t share(std::size_t configs, double part, std::size_t least) {
  return std::max(least, static_cast<std::size_t>(std::ceil(part * static_cast<double>(configs))));
}

// The first `best`, then for each value of each axis the first config that has it. A model may be wrong about a
// value whatever the others are, and a search that begins where the model likes it would never see the value.
Order with_every_value(const SearchSpace& space, const std::vector<long long>& ranked,
                       std::size_t best) {
  Order order;
  std::vector<long long> rest;
  std::set<std::pair<std::size_t, long long>> seen;  // axis, value
  for (std::size_t place = 0; place < ranked.size(); ++place) {
    const std::vector<long long> positions = space.positions(ranked[place]);
    bool is_new = place < best;
    for (std::size_t axis = 0; axis < positions.size(); ++axis) {
      is_new = seen.emplace(axis, positions[axis]).second || is_new;
    }
    (is_new ? order.configs : rest).push_back(ranked[place]);
  }
  order.first = order.configs.size();
  order.configs.insert(order.configs.end(), rest.begin(), rest.end());
  return order;
}

}  // namespace

std::unique_ptr<Strategy> make_racing(const SearchSpace& space, const Config& base,
                                      const RaceRules& rules, std::uint64_t seed) {
  std::vector<long long> order = space.allowed_indices();
  Random random(seed);
  shuffle(order, random);
  const auto at_base = std::find_if(order.begin(), order.end(),
                                    [&](long long index) { return space.at(index) == base; });
  if (at_base != order.end()) {
    std::rotate(order.begin(), at_base, at_base + 1);
  }
  const std::size_t first = share(order.size(), 0.05, 12);
  return std::make_unique<Racing>(space, rules, FieldSizes{10, 3}, [order, first] {
    return Order{order, first};
  });
}

std::unique_ptr<Strategy> make_sim_guided(const SearchSpace& space, const RaceRules& rules,
                                          Predict predict) {
  const auto order = [&space, predict = std::move(predict)] {
    std::vector<long long> indices = space.allowed_indices();
    std::vector<Config> configs;
    for (const long long index : indices) {
      configs.push_back(space.at(index));
    }
    const std::vector<double> walls = predict(configs);
    std::map<long long, double> predicted;
    for (std::size_t i = 0; i < indices.size(); ++i) {
      predicted[indices[i]] = walls[i];
    }
    // What cannot be predicted may be good: it is tried with the best of its neighbours.
    std::map<long long, double> key = predicted;
    for (auto& [index, wall] : key) {
      if (std::isnan(wall)) {
        wall = std::numeric_limits<double>::infinity();
        for (const long long near : space.neighbours(index)) {
          const auto known = predicted.find(near);
          wall = known != predicted.end() && known->second < wall ? known->second : wall;
        }
      }
    }
    std::stable_sort(indices.begin(), indices.end(),
                     [&](long long a, long long b) { return key[a] < key[b]; });
    return with_every_value(space, indices, 8);
  };
  return std::make_unique<Racing>(space, rules, FieldSizes{8, 4}, order);
}

}  // namespace fusescope::sweep
