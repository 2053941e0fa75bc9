#pragma once
// Pairwise designs: few cases in which every level of every factor meets every level of every other
// factor, where the two may go together.

#include <functional>
#include <set>
#include <utility>
#include <vector>

#include "base/random.hpp"

namespace fusescope::test {

inline constexpr int kOpen = -1;        // a factor whose level is not chosen yet
using PairwiseCase = std::vector<int>;  // by factor: its level
using FactorLevel = std::pair<int, int>;
using LevelPair = std::pair<FactorLevel, FactorLevel>;

class Pairwise {
 public:
  // `levels`: by factor, how many. `may_be`: whether the levels chosen so far go together; what it
  // allows must be possible to complete.
  Pairwise(std::vector<int> levels, std::function<bool(const PairwiseCase&)> may_be)
      : levels_(std::move(levels)), may_be_(std::move(may_be)) {}

  // Every pair of levels that may meet.
  std::set<LevelPair> pairs() const {
    std::set<LevelPair> all;
    for (int f = 0; f < factors(); ++f) {
      for (int g = f + 1; g < factors(); ++g) {
        for (int a = 0; a < levels_[index(f)]; ++a) {
          for (int b = 0; b < levels_[index(g)]; ++b) {
            PairwiseCase two(levels_.size(), kOpen);
            two[index(f)] = a;
            two[index(g)] = b;
            if (may_be_(two)) {
              all.insert({{f, a}, {g, b}});
            }
          }
        }
      }
    }
    return all;
  }

  static std::set<LevelPair> pairs_of(const PairwiseCase& full) {
    std::set<LevelPair> met;
    for (int f = 0; f < static_cast<int>(full.size()); ++f) {
      for (int g = f + 1; g < static_cast<int>(full.size()); ++g) {
        met.insert({{f, full[index(f)]}, {g, full[index(g)]}});
      }
    }
    return met;
  }

  // Greedy: each case begins with a pair that has not met and is filled up so that many more meet.
  std::vector<PairwiseCase> cases() const {
    constexpr int kTries = 16;
    Random random(1);
    std::vector<PairwiseCase> chosen;
    for (std::set<LevelPair> missing = pairs(); !missing.empty();) {
      PairwiseCase best;
      std::size_t best_gain = 0;
      for (int attempt = 0; attempt < kTries; ++attempt) {
        const PairwiseCase candidate = fill_up(*missing.begin(), missing, random);
        if (const std::size_t gain = gain_of(candidate, missing); gain > best_gain) {
          best = candidate;
          best_gain = gain;
        }
      }
      for (const LevelPair& pair : pairs_of(best)) {
        missing.erase(pair);
      }
      chosen.push_back(best);
    }
    return chosen;
  }

 private:
  static std::size_t index(int factor) { return static_cast<std::size_t>(factor); }
  int factors() const { return static_cast<int>(levels_.size()); }

  static std::size_t gain_of(const PairwiseCase& full, const std::set<LevelPair>& missing) {
    std::size_t gain = 0;
    for (const LevelPair& pair : pairs_of(full)) {
      gain += missing.count(pair);
    }
    return gain;
  }

  PairwiseCase fill_up(const LevelPair& start, const std::set<LevelPair>& missing,
                       Random& random) const {
    PairwiseCase filled(levels_.size(), kOpen);
    filled[index(start.first.first)] = start.first.second;
    filled[index(start.second.first)] = start.second.second;
    const auto first = static_cast<int>(random.below(levels_.size()));
    for (int i = 0; i < factors(); ++i) {
      const int factor = (first + i) % factors();
      if (filled[index(factor)] == kOpen) {
        filled[index(factor)] = best_level(filled, factor, missing, random);
      }
    }
    return filled;
  }

  // The level with which most missing pairs meet; among equals, a random one.
  int best_level(PairwiseCase filled, int factor, const std::set<LevelPair>& missing,
                 Random& random) const {
    const int levels = levels_[index(factor)];
    const auto first = static_cast<int>(random.below(static_cast<std::uint64_t>(levels)));
    int best = kOpen;
    std::size_t best_gain = 0;
    for (int i = 0; i < levels; ++i) {
      const int level = (first + i) % levels;
      filled[index(factor)] = level;
      if (!may_be_(filled)) {
        continue;
      }
      std::size_t gain = 0;
      for (int other = 0; other < factors(); ++other) {
        if (other != factor && filled[index(other)] != kOpen) {
          const FactorLevel mine{factor, level};
          const FactorLevel theirs{other, filled[index(other)]};
          gain += missing.count(other < factor ? LevelPair{theirs, mine} : LevelPair{mine, theirs});
        }
      }
      if (best == kOpen || gain > best_gain) {
        best = level;
        best_gain = gain;
      }
    }
    return best;
  }

  std::vector<int> levels_;
  std::function<bool(const PairwiseCase&)> may_be_;
};

}  // namespace fusescope::test
