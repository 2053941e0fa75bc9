#include <unordered_map>

#include "base/random.hpp"
#include "sweep/strategy.hpp"

namespace fusescope::sweep {
namespace {

// A shuffle that is drawn as it is needed: position i swaps with a random position from i on, and only
// positions that have moved are stored.
class Shuffle : public Strategy {
 public:
  Shuffle(const SearchSpace& space, std::uint64_t seed) : space_(space), random_(seed) {}

  std::optional<Proposal> next() override {
    while (drawn_ < space_.size()) {
      Config config = space_.at(draw());
      if (space_.allowed(config)) {
        return Proposal{config};
      }
    }
    return std::nullopt;
  }

  void tell(const Trial&) override {}

 private:
  long long draw() {
    const long long here = drawn_++;
    const auto rest = static_cast<std::uint64_t>(space_.size() - here);
    const long long there = here + static_cast<long long>(random_.below(rest));
    const long long picked = value_at(there);
    moved_[there] = value_at(here);
    moved_.erase(here);
    return picked;
  }

  long long value_at(long long position) const {
    const auto found = moved_.find(position);
    return found == moved_.end() ? position : found->second;
  }

  const SearchSpace& space_;
  Random random_;
  std::unordered_map<long long, long long> moved_;
  long long drawn_ = 0;
};

}  // namespace

std::unique_ptr<Strategy> make_random(const SearchSpace& space, std::uint64_t seed) {
  return std::make_unique<Shuffle>(space, seed);
}

}  // namespace fusescope::sweep
