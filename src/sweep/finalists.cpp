#include "sweep/finalists.hpp"

#include <algorithm>

#include "sweep/results.hpp"

namespace fusescope::sweep {

std::vector<Given> rounds_of_turns(const std::vector<Config>& configs, int rounds) {
  std::vector<Given> turns;
  for (int round = 0; round < rounds; ++round) {
    for (std::size_t turn = 0; turn < configs.size(); ++turn) {
      const std::size_t place = (turn + static_cast<std::size_t>(round)) % configs.size();
      turns.push_back({TrialKind::finalist, "", configs[place], round});
    }
  }
  return turns;
}

std::vector<Given> finalist_rounds(const std::vector<Trial>& trials, const Finalists& rules,
                                   bool base_competes) {
  // By what was measured until the search ended, so that a resumed sweep has the same finalists.
  std::vector<Trial> searched;
  std::copy_if(trials.begin(), trials.end(), std::back_inserter(searched),
               [](const Trial& trial) { return trial.kind == TrialKind::search; });
  if (base_competes) {
    const std::vector<Trial> bases = base_measurements(trials);
    searched.insert(searched.end(), bases.begin(), bases.end());
  }
  const std::vector<Ranked> ranking = rank(searched);
  if (rules.configs < 2 || ranking.size() < 2 || ranking.front().trial.half_ci_us == 0) {
    return {};
  }
  std::vector<Config> configs;
  for (const Ranked& each : ranking) {
    if (static_cast<int>(configs.size()) < rules.configs) {
      configs.push_back(each.trial.config);
    }
  }
  return rounds_of_turns(configs, rules.rounds);
}

}  // namespace fusescope::sweep
