#pragma once
// Inside the sweep library: a strategy that thinks in rounds. A round is proposed as a whole and
// evaluated once the whole of it has been told.

#include <deque>
#include <map>
#include <utility>
#include <vector>

#include "sweep/strategy.hpp"

namespace fusescope::sweep {

class Rounds : public Strategy {
 public:
  std::optional<Proposal> next() final;
  void tell(const Trial& trial) final;

 protected:
  // The next round; `told`: the trials of the round before, in its order. Nothing: done.
  virtual std::vector<Proposal> plan(const std::vector<Trial>& told) = 0;

 private:
  std::vector<Trial> told_;  // of the round, at their places
  std::deque<Proposal> waiting_;
  std::map<std::pair<std::uint64_t, int>, std::size_t> places_;  // (config's hash, visit) -> place
  bool done_ = false;
};

}  // namespace fusescope::sweep
