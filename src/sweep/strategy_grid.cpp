#include "sweep/strategy.hpp"

namespace fusescope::sweep {
namespace {

class Grid : public Strategy {
 public:
  explicit Grid(const SearchSpace& space) : space_(space) {}

  std::optional<Proposal> next() override {
    while (index_ < space_.size()) {
      Config config = space_.at(index_++);
      if (space_.allowed(config)) {
        return Proposal{config};
      }
    }
    return std::nullopt;
  }

  void tell(const Trial&) override {}

 private:
  const SearchSpace& space_;
  long long index_ = 0;
};

}  // namespace

std::unique_ptr<Strategy> make_grid(const SearchSpace& space) {
  return std::make_unique<Grid>(space);
}

}  // namespace fusescope::sweep
