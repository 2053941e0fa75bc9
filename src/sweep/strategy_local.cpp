#include <algorithm>
#include <limits>
#include <map>

#include "sweep/rounds.hpp"
#include "sweep/shuffle.hpp"

namespace fusescope::sweep {
namespace {

constexpr double kFailed = std::numeric_limits<double>::infinity();

class Local : public Rounds {
 public:
  Local(const SearchSpace& space, const Config& base, std::uint64_t seed)
      : space_(space), starts_(space.allowed_indices()) {
    Random random(seed);
    shuffle(starts_, random);
    for (const long long index : starts_) {
      walls_[index] = std::nullopt;
    }
    // The base config, where the axes pass through it, is taken first: from the back.
    std::reverse(starts_.begin(), starts_.end());
    const auto at_base = std::find_if(starts_.begin(), starts_.end(),
                                      [&](long long index) { return space.at(index) == base; });
    if (at_base != starts_.end()) {
      std::rotate(at_base, at_base + 1, starts_.end());
    }
  }

 private:
  std::vector<Proposal> plan(const std::vector<Trial>& told) override {
    for (std::size_t i = 0; i < told.size(); ++i) {
      walls_[round_[i]] = told[i].verdict == Verdict::ok ? told[i].median_us : kFailed;
    }
    while (true) {
      if (here_) {
        climb();
      }
      round_ = here_ ? unmeasured_neighbours() : next_start();
      if (!round_.empty() || (!here_ && starts_.empty())) {
        break;
      }
    }
    std::vector<Proposal> proposals;
    for (const long long index : round_) {
      proposals.push_back({space_.at(index)});
    }
    return proposals;
  }

  // Moves to the best measured neighbour, as long as there is a faster one; where all neighbours are
  // measured and none is, the climb is over.
  void climb() {
    while (unmeasured_neighbours().empty()) {
      long long best = *here_;
      for (const long long near : space_.neighbours(*here_)) {
        const auto wall = walls_.find(near);
        if (wall != walls_.end() && *wall->second < *walls_[best]) {
          best = near;
        }
      }
      if (best == *here_) {
        here_.reset();
        return;
      }
      here_ = best;
    }
  }

  std::vector<long long> unmeasured_neighbours() const {
    std::vector<long long> found;
    for (const long long near : space_.neighbours(*here_)) {
      const auto wall = walls_.find(near);
      if (wall != walls_.end() && !wall->second) {
        found.push_back(near);
      }
    }
    return found;
  }

  std::vector<long long> next_start() {
    while (!starts_.empty()) {
      const long long start = starts_.back();
      starts_.pop_back();
      if (!walls_[start]) {
        here_ = start;
        return {start};
      }
    }
    return {};
  }

  const SearchSpace& space_;
  std::vector<long long> starts_;                     // not yet tried, from the back
  std::map<long long, std::optional<double>> walls_;  // [us] of every allowed config
  std::optional<long long> here_;
  std::vector<long long> round_;
};

}  // namespace

std::unique_ptr<Strategy> make_local(const SearchSpace& space, const Config& base,
                                     std::uint64_t seed) {
  return std::make_unique<Local>(space, base, seed);
}

}  // namespace fusescope::sweep
