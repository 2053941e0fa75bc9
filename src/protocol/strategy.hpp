#pragma once
// How a search picks schedules: one strategy is drawn per schedule. Whatever it picks is written down, so
// that the schedule can be run again and made smaller.

#include <array>
#include <cstdint>
#include <vector>

#include "base/random.hpp"
#include "protocol/chooser.hpp"
#include "protocol/scenario.hpp"

namespace fusescope::protocol {

enum class StrategyKind {
  uniform,              // any step that can be made
  bursts,               // the thread that ran last, mostly
  priorities,           // a random order of threads, changed at a few random steps
  starve_role,          // one role moves only when nothing else can
  delay_link,           // copies from one rank to another, likewise
  reorder_completions,  // copies complete only when no thread can move, and then in any order
  stall_rank,           // one rank stands still for a while
};
inline constexpr int kStrategies = 7;
const char* to_string(StrategyKind kind);

// 0 = go on with the thread that ran last if it can, else with the first in the list; i + 1 = the i-th
// candidate, counted round if there are fewer.
using Choices = std::vector<std::uint16_t>;

// What a strategy needs to know of what it runs.
struct StrategyTarget {
  int ranks = 1;
  int steps = 1;           // about how many there will be
  bool impatient = false;  // waits give up now and then
};
StrategyTarget target_of(const Scenario& scenario);

// Draws a strategy, and follows it.
class StrategyChooser final : public Chooser {
 public:
  StrategyChooser(const StrategyTarget& target, std::uint64_t seed, std::uint64_t index);
  int choose(const Candidates& candidates) override;
  int choose_value(int count) override;

  StrategyKind kind() const { return kind_; }
  const Choices& choices() const { return choices_; }

 private:
  int pick(const Candidates& candidates);
  int by_priority(const Candidates& candidates);
  template <class Avoid>
  int pick_but(const Candidates& candidates, Avoid avoid);
  std::uint64_t priority(std::uint32_t id) const;

  Random random_;
  StrategyKind kind_;
  bool impatient_;
  int role_, rank_, from_, to_;
  std::uint64_t step_ = 0;
  std::uint64_t stall_from_ = 0, stall_until_ = 0;
  std::uint64_t salt_;
  std::array<std::uint64_t, 4> changes_{};  // steps at which the first thread becomes the last
  std::vector<std::uint32_t> demoted_;
  Choices choices_;
};

// Runs recorded choices again; where they end, choice 0.
class ReplayChooser final : public Chooser {
 public:
  explicit ReplayChooser(const Choices& choices) : choices_(choices) {}
  int choose(const Candidates& candidates) override;
  int choose_value(int count) override;

 private:
  int next() { return at_ < choices_.size() ? choices_[at_++] : 0; }
  const Choices& choices_;
  std::size_t at_ = 0;
};

}  // namespace fusescope::protocol
