#include "sweep/results.hpp"

#include <algorithm>
#include <map>
#include <string>
#include <tuple>
#include <utility>

#include "base/random.hpp"
#include "sweep/statistics.hpp"
#include "sweep/timing_guard.hpp"

namespace fusescope::sweep {
namespace {

constexpr int kDraws = 2000;  // of the bootstrap
constexpr std::uint64_t kBootstrapSeed = 20;

// All trials of one config (or rung) in a log.
struct Group {
  std::vector<const Trial*> searched;
  std::vector<const Trial*> finals;
};

// Adds a trial's samples to a result.
void pool(const Trial& trial, std::vector<double>& raw, Trial& result) {
  const std::vector<double> walls = counted_walls(trial);
  result.wall_us.insert(result.wall_us.end(), walls.begin(), walls.end());
  result.pooled.push_back(static_cast<int>(walls.size()));
  raw.insert(raw.end(), trial.wall_us.begin(), trial.wall_us.end());
  result.rank_wall_us.resize(std::max(result.rank_wall_us.size(), trial.rank_wall_us.size()));
  for (std::size_t rank = 0; rank < trial.rank_wall_us.size(); ++rank) {
    result.rank_wall_us[rank].insert(result.rank_wall_us[rank].end(),
                                     trial.rank_wall_us[rank].begin(),
                                     trial.rank_wall_us[rank].end());
  }
  result.sm_clock_mhz.insert(result.sm_clock_mhz.end(), trial.sm_clock_mhz.begin(),
                             trial.sm_clock_mhz.end());
}

Trial pooled(const std::vector<const Trial*>& visits, const Trial& first) {
  Trial result = *visits.back();
  result.id = first.id;
  result.seconds = 0;
  for (const Trial* visit : visits) {
    result.seconds += visit->seconds;
  }
  if (result.verdict != Verdict::ok) {
    result.pooled = {0};
    return result;
  }
  result.wall_us.clear();
  result.rank_wall_us.clear();
  result.sm_clock_mhz.clear();
  std::vector<double> raw;
  for (const Trial* visit : visits) {
    if (visit->verdict == Verdict::ok) {
      pool(*visit, raw, result);
    }
  }
  result.drift = 1;
  result.throttle_mhz = 0;
  if (visits.size() > 1) {
    set_medians(result);
    result.raw_median_us = median(std::move(raw));
  }
  result.searched_us = result.median_us;
  result.searched_half_ci_us = result.half_ci_us;
  return result;
}

Trial result_of(const Group& group) {
  const Trial& first = group.searched.empty() ? *group.finals.front() : *group.searched.front();
  std::vector<const Trial*> finals;
  std::copy_if(group.finals.begin(), group.finals.end(), std::back_inserter(finals),
               [](const Trial* trial) { return trial->verdict == Verdict::ok; });
  const std::vector<const Trial*>& without = group.searched.empty() ? group.finals : group.searched;
  Trial result = pooled(finals.empty() ? without : finals, first);
  if (!finals.empty() && !group.searched.empty()) {
    const Trial searched = pooled(group.searched, first);
    result.searched_us = searched.median_us;
    result.searched_half_ci_us = searched.half_ci_us;
  }
  for (const Trial* trial : group.searched) {
    if (result.timeline_wall_us == 0 && trial->timeline_wall_us > 0) {
      result.steps_us = trial->steps_us;
      result.timeline_wall_us = trial->timeline_wall_us;
      result.exposed_us = trial->exposed_us;
    }
  }
  return result;
}

bool in_turns(const Trial& a, const Trial& b) {
  return a.kind == TrialKind::finalist && b.kind == TrialKind::finalist;
}

bool is_tie(const Trial& a, const Trial& best) {
  if (in_turns(a, best)) {
    return compare_rounds(rounds_of(best), rounds_of(a)).tie();
  }
  const Wall one = wall_beside(a, best);
  const Wall first = wall_beside(best, a);
  if (one.half_ci_us == 0 && first.half_ci_us == 0) {
    return one.median_us <= first.median_us * (1 + kModelNoise);
  }
  return one.median_us - one.half_ci_us <= first.median_us + first.half_ci_us;
}

double median_of_drawn(const RoundSamples& rounds, const std::vector<std::size_t>& drawn) {
  std::vector<double> walls;
  for (const std::size_t round : drawn) {
    walls.insert(walls.end(), rounds[round].begin(), rounds[round].end());
  }
  return median(std::move(walls));
}

}  // namespace

std::vector<Trial> base_measurements(const std::vector<Trial>& trials) {
  std::vector<Trial> measurements;
  std::vector<double> medians;
  const auto end = std::find_if(trials.rbegin(), trials.rend(), [](const Trial& trial) {
                     return trial.kind == TrialKind::search;
                   }).base();
  for (auto each = trials.begin(); each != end; ++each) {
    if (each->kind == TrialKind::base) {
      Trial& measured = measurements.emplace_back(*each);
      measured.kind = TrialKind::search;
      if (measured.verdict == Verdict::ok && !measured.wall_us.empty()) {
        medians.push_back(measured.median_us);
        measured.drift = drift_of(medians);
        set_medians(measured);
      }
    }
  }
  return measurements;
}

std::vector<Trial> latest(const std::vector<Trial>& trials) {
  const std::vector<Trial> bases = base_measurements(trials);
  std::vector<Trial> results;
  std::vector<Group> groups;
  int searched = 0;  // the first id that the search has not given
  std::map<std::uint64_t, std::size_t> by_config;
  std::map<std::string, const Trial*> rungs;
  for (const Trial& trial : trials) {
    if (!trial.pooled.empty()) {
      results.push_back(trial);  // one already
    } else if (trial.kind == TrialKind::rung) {
      rungs[trial.label] = &trial;
    } else if (trial.kind != TrialKind::base) {
      const auto [place, fresh] = by_config.emplace(hash(trial.config), groups.size());
      if (fresh) {
        groups.emplace_back();
      }
      Group& group = groups[place->second];
      (trial.kind == TrialKind::finalist ? group.finals : group.searched).push_back(&trial);
      searched = trial.kind == TrialKind::search ? std::max(searched, trial.id + 1) : searched;
    }
  }
  for (Group& group : groups) {
    const bool only_finals = group.searched.empty();
    for (const Trial& base : bases) {
      if (only_finals && base.config == group.finals.front()->config) {
        group.searched.push_back(&base);
      }
    }
    results.push_back(result_of(group));
    if (only_finals) {
      results.back().id = searched + group.finals.front()->id;
    }
  }
  for (const Trial& trial : trials) {
    if (trial.pooled.empty() && trial.kind == TrialKind::rung && rungs[trial.label] == &trial) {
      results.push_back(pooled({&trial}, trial));
    }
  }
  return results;
}

bool is_better(const Trial& a, const Trial& b) {
  const auto key = [](const Trial& trial) {
    return std::tuple(trial.kind == TrialKind::finalist ? 0 : 1, trial.median_us, trial.id);
  };
  return key(a) < key(b);
}

std::optional<Trial> best_trial(const std::vector<Trial>& trials) {
  std::optional<Trial> best;
  for (const Trial& trial : latest(trials)) {
    if (trial.kind != TrialKind::rung && trial.verdict == Verdict::ok &&
        (!best || is_better(trial, *best))) {
      best = trial;
    }
  }
  return best;
}

Wall wall_beside(const Trial& result, const Trial& other) {
  return in_turns(result, other) ? Wall{result.median_us, result.half_ci_us}
                                 : Wall{result.searched_us, result.searched_half_ci_us};
}

double slower_than(const Trial& a, const Trial& best) {
  return wall_beside(a, best).median_us / wall_beside(best, a).median_us - 1;
}

std::vector<Ranked> rank(const std::vector<Trial>& trials) {
  std::vector<Ranked> ranking;
  for (Trial& trial : latest(trials)) {
    if (trial.kind != TrialKind::rung && trial.verdict == Verdict::ok) {
      ranking.push_back({std::move(trial), false});
    }
  }
  std::sort(ranking.begin(), ranking.end(),
            [](const Ranked& a, const Ranked& b) { return is_better(a.trial, b.trial); });
  for (Ranked& each : ranking) {
    each.ties_with_best = is_tie(each.trial, ranking.front().trial);
  }
  return ranking;
}

RoundSamples rounds_of(const Trial& result) {
  RoundSamples rounds;
  auto next = result.wall_us.begin();
  for (const int samples : result.pooled) {
    rounds.emplace_back(next, next + samples);
    next += samples;
  }
  return rounds;
}

RatioInterval compare_rounds(const RoundSamples& a, const RoundSamples& b) {
  const std::size_t rounds = std::min(a.size(), b.size());
  if (rounds == 0) {
    return {};
  }
  std::vector<std::size_t> drawn(rounds);
  for (std::size_t i = 0; i < rounds; ++i) {
    drawn[i] = i;
  }
  RatioInterval interval;
  interval.ratio = median_of_drawn(b, drawn) / median_of_drawn(a, drawn) - 1;
  Random random(kBootstrapSeed);
  std::vector<double> ratios(kDraws);
  for (double& ratio : ratios) {
    for (std::size_t& round : drawn) {
      round = static_cast<std::size_t>(random.below(rounds));
    }
    ratio = median_of_drawn(b, drawn) / median_of_drawn(a, drawn) - 1;
  }
  std::sort(ratios.begin(), ratios.end());
  interval.low = ratios[kDraws * 25 / 1000];
  interval.high = ratios[kDraws * 975 / 1000 - 1];
  return interval;
}

}  // namespace fusescope::sweep
