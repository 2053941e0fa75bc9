#include "cli/sweep_json.hpp"

#include <algorithm>

#include "sweep/knob_json.hpp"
#include "sweep/summary.hpp"

namespace fusescope::cli {
namespace {

Json trial_json(const sweep::Trial& trial) {
  return {{"id", trial.id},
          {"label", trial.label},
          {"verdict", sweep::name(trial.verdict)},
          {"reason", trial.reason},
          {"source", trial.source},
          {"config", Json::parse(sweep::to_json(trial.config).dump())},
          {"median_us", trial.median_us},
          {"half_ci_us", trial.half_ci_us},
          {"raw_median_us", trial.raw_median_us},
          {"finalist", trial.kind == sweep::TrialKind::finalist},
          {"exposed_us", trial.exposed_us},
          {"steps_us", trial.steps_us}};
}

const char* ending_name(sweep::Ending ending) {
  switch (ending) {
    case sweep::Ending::stopped:
      return "stopped";
    case sweep::Ending::trials_spent:
      return "trials_spent";
    case sweep::Ending::seconds_spent:
      return "seconds_spent";
    case sweep::Ending::no_progress:
      return "no_progress";
    case sweep::Ending::complete:
      break;
  }
  return "complete";
}

}  // namespace

Json sweep_json(const std::string& folder, const std::vector<sweep::Trial>& all,
                const sweep::Outcome& outcome) {
  const std::vector<sweep::Trial> trials = sweep::latest(all);
  const std::vector<sweep::Ranked> ranking = sweep::rank(trials);
  Json document = {{"folder", folder},
                   {"ending", ending_name(outcome.ending)},
                   {"planned", outcome.planned},
                   {"ran", outcome.ran},
                   {"found_in_log", outcome.found},
                   {"seconds",
                    {{"total", outcome.seconds},
                     {"startup", outcome.startup_seconds},
                     {"engine", outcome.engine_seconds},
                     {"samples", outcome.sample_seconds}}},
                   {"ok", ranking.size()},
                   {"best", nullptr},
                   {"ties", Json::array()},
                   {"ladder", Json::array()},
                   {"failed", Json::array()}};
  if (outcome.rest_ms > 0) {
    document["rest_ms"] = outcome.rest_ms;
  }
  if (!ranking.empty()) {
    document["best"] = trial_json(ranking.front().trial);
  }
  for (std::size_t i = 1; i < ranking.size(); ++i) {
    if (ranking[i].ties_with_best) {
      document["ties"].push_back(ranking[i].trial.id);
    }
  }
  std::vector<sweep::Trial> rungs;
  for (const sweep::Trial& trial : trials) {
    if (trial.kind == sweep::TrialKind::rung) {
      rungs.push_back(trial);
    } else if (trial.verdict != sweep::Verdict::ok) {
      document["failed"].push_back(trial_json(trial));
    }
  }
  std::sort(rungs.begin(), rungs.end(),
            [](const sweep::Trial& a, const sweep::Trial& b) { return a.id < b.id; });
  for (const sweep::Trial& rung : rungs) {
    document["ladder"].push_back(trial_json(rung));
  }
  return document;
}

}  // namespace fusescope::cli
