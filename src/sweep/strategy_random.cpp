#include <random>
#include <unordered_map>

#include "sweep/strategy.hpp"

namespace fusescope::sweep {
namespace {

// A shuffle that is drawn as it is needed: position i swaps with a random position from i on, and
// only positions that have moved are stored.
class Random : public Strategy {
 public:
  Random(const SearchSpace& space, std::uint64_t seed) : space_(space), generator_(seed) {}

  std::optional<Config> next() override {
    while (drawn_ < space_.size()) {
      Config config = space_.at(draw());
      if (space_.allowed(config)) {
        return config;
      }
    }
    return std::nullopt;
  }

  void tell(const Trial&) override {}

 private:
  long long draw() {
    const long long here = drawn_++;
    const long long there = here + below(space_.size() - here);
    const long long picked = value_at(there);
    moved_[there] = value_at(here);
    moved_.erase(here);
    return picked;
  }

  long long value_at(long long position) const {
    const auto found = moved_.find(position);
    return found == moved_.end() ? position : found->second;
  }

  // Uniform in [0, bound). The standard's distributions differ between libraries; this does not.
  long long below(long long bound) {
    const auto range = static_cast<std::uint64_t>(bound);
    const std::uint64_t unbiased = generator_.max() - generator_.max() % range;
    std::uint64_t drawn = generator_();
    while (drawn >= unbiased) {
      drawn = generator_();
    }
    return static_cast<long long>(drawn % range);
  }

  const SearchSpace& space_;
  std::mt19937_64 generator_;
  std::unordered_map<long long, long long> moved_;
  long long drawn_ = 0;
};

}  // namespace

std::unique_ptr<Strategy> make_random(const SearchSpace& space, std::uint64_t seed) {
  return std::make_unique<Random>(space, seed);
}

}  // namespace fusescope::sweep
