#include "protocol/strategy.hpp"

#include <algorithm>

namespace fusescope::protocol {
namespace {

constexpr std::uint64_t kStrategyStream = 0x5eac4;
constexpr std::uint64_t kImpatience = 48;  // one step in so many is a wait that gives up

std::uint16_t encoded(int index) {
  return static_cast<std::uint16_t>(index + 1);
}

}  // namespace

const char* to_string(StrategyKind kind) {
  static constexpr std::array<const char*, kStrategies> kNames = {
      "uniform",   "bursts", "priorities", "starve_role", "delay_link", "reorder_completions",
      "stall_rank"};
  return kNames[static_cast<std::size_t>(kind)];
}

StrategyTarget target_of(const Scenario& s) {
  constexpr int kStepsPerRank = 300;
  return {s.ranks, kStepsPerRank * s.ranks * s.iterations, s.fault == Fault::impatience};
}

StrategyChooser::StrategyChooser(const StrategyTarget& s, std::uint64_t seed, std::uint64_t index)
    : random_(mix64(seed ^ kStrategyStream), index),
      kind_(static_cast<StrategyKind>(random_.below(kStrategies))),
      impatient_(s.impatient),
      role_(static_cast<int>(random_.below(kRoles))),
      rank_(static_cast<int>(random_.below(s.ranks))),
      from_(static_cast<int>(random_.below(s.ranks))),
      to_(static_cast<int>(random_.below(s.ranks))),
      salt_(random_.next()) {
  const auto length = static_cast<std::uint64_t>(s.steps);
  stall_from_ = random_.below(length);
  stall_until_ = stall_from_ + random_.below(length);
  for (std::uint64_t& change : changes_) {
    change = random_.below(length);
  }
}

int StrategyChooser::choose(const Candidates& candidates) {
  const int preferred = candidates.preferred();
  const int chosen = pick(candidates);
  ++step_;
  choices_.push_back(chosen == preferred ? std::uint16_t{0} : encoded(chosen));
  return chosen;
}

int StrategyChooser::choose_value(int count) {
  const int chosen = static_cast<int>(random_.below(count));
  choices_.push_back(chosen == count - 1 ? std::uint16_t{0} : encoded(chosen));
  return chosen;
}

std::uint64_t StrategyChooser::priority(std::uint32_t id) const {
  const auto demoted = std::find(demoted_.begin(), demoted_.end(), id);
  return demoted == demoted_.end() ? mix64(salt_ ^ id) | 256
                                   : static_cast<std::uint64_t>(demoted_.end() - demoted);
}

int StrategyChooser::by_priority(const Candidates& candidates) {
  int best = 0;
  std::uint32_t best_id = 0;
  std::uint64_t highest = 0;
  for (int i = 0; i < candidates.steps(); ++i) {
    const std::uint32_t id = candidates.at(i).id;
    if (const std::uint64_t own = priority(id); own > highest) {
      highest = own;
      best = i;
      best_id = id;
    }
  }
  if (std::find(changes_.begin(), changes_.end(), step_) != changes_.end()) {
    demoted_.push_back(best_id);
  }
  return best;
}

// Uniformly among the candidates that are not to be avoided; among all if there is no other.
template <class Avoid>
int StrategyChooser::pick_but(const Candidates& candidates, Avoid avoid) {
  const int steps = candidates.steps();
  const int first = static_cast<int>(random_.below(steps));
  for (int i = 0; i < steps; ++i) {
    const int index = (first + i) % steps;
    if (!avoid(candidates.at(index))) {
      return index;
    }
  }
  return first;
}

int StrategyChooser::pick(const Candidates& candidates) {
  const int steps = candidates.steps();
  const int waits = candidates.size() - steps;
  if (steps == 0 || (impatient_ && waits > 0 && random_.below(kImpatience) == 0)) {
    return steps + static_cast<int>(random_.below(waits));
  }
  switch (kind_) {
    case StrategyKind::uniform:
      break;
    case StrategyKind::bursts:
      if (random_.below(8) != 0) {
        return candidates.preferred();
      }
      break;
    case StrategyKind::priorities:
      return by_priority(candidates);
    case StrategyKind::starve_role:
      return pick_but(candidates, [this](const Candidate& c) {
        return static_cast<int>(c.label->role) == role_;
      });
    case StrategyKind::delay_link:
      return pick_but(candidates, [this](const Candidate& c) {
        return c.from_rank == from_ && c.to_rank == to_ &&
               (c.label->role == Role::load || c.label->role == Role::store);
      });
    case StrategyKind::reorder_completions:
      return pick_but(candidates, [](const Candidate& c) {
        return c.label->role == Role::load || c.label->role == Role::store;
      });
    case StrategyKind::stall_rank:
      if (step_ >= stall_from_ && step_ < stall_until_) {
        return pick_but(candidates, [this](const Candidate& c) { return c.label->rank == rank_; });
      }
      break;
  }
  return static_cast<int>(random_.below(steps));
}

int ReplayChooser::choose(const Candidates& candidates) {
  const int choice = next();
  return choice == 0 ? candidates.preferred() : (choice - 1) % candidates.size();
}

int ReplayChooser::choose_value(int count) {
  const int choice = next();
  return choice == 0 ? count - 1 : (choice - 1) % count;
}

}  // namespace fusescope::protocol
