#include "sweep/rounds.hpp"

namespace fusescope::sweep {

std::optional<Proposal> Rounds::next() {
  if (waiting_.empty() && places_.empty() && !done_) {
    const std::vector<Proposal> round = plan(told_);
    done_ = round.empty();
    told_.assign(round.size(), {});
    for (std::size_t place = 0; place < round.size(); ++place) {
      places_[{hash(round[place].config), round[place].visit}] = place;
      waiting_.push_back(round[place]);
    }
  }
  if (waiting_.empty()) {
    return std::nullopt;
  }
  Proposal proposal = waiting_.front();
  waiting_.pop_front();
  return proposal;
}

void Rounds::tell(const Trial& trial) {
  const auto place = places_.find({hash(trial.config), trial.visit});
  if (place != places_.end()) {
    told_[place->second] = trial;
    places_.erase(place);
  }
}

}  // namespace fusescope::sweep
