// What replays show, as a table and as JSON.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "sweep/replay.hpp"

namespace fusescope::sweep {
namespace {

double quantile(std::vector<double> values, double share) {
  if (values.empty()) {
    return 0;
  }
  std::sort(values.begin(), values.end());
  const double place = share * static_cast<double>(values.size() - 1);
  return values[static_cast<std::size_t>(std::llround(place))];
}

std::vector<double> column(const ReplayResult& result, double ReplayRun::*member,
                           bool only_reached) {
  std::vector<double> values;
  for (const ReplayRun& run : result.runs) {
    if (run.reached || !only_reached) {
      values.push_back(run.*member);
    }
  }
  return values;
}

int within_budget(const ReplayResult& result, double ReplayRun::*cost, double budget) {
  return static_cast<int>(
      std::count_if(result.runs.begin(), result.runs.end(),
                    [&](const ReplayRun& run) { return run.reached && run.*cost <= budget; }));
}

Json spread(const std::vector<double>& values) {
  return {{"median", quantile(values, 0.5)},
          {"p90", quantile(values, 0.9)},
          {"worst", quantile(values, 1)}};
}

}  // namespace

std::string replay_text(const StoredSamples& stored, const std::vector<ReplayResult>& results,
                        const ReplayOptions& options) {
  std::string text = fmt::format(
      "{} configs, measured in {:.1f} s ({:.1f} s of it samples); best {:.1f} us; {} within {:g}% "
      "of "
      "it.\n{} seeds each; costs as shares of those {:.1f} s.\n\n",
      stored.configs(), stored.seconds(), stored.sample_seconds(), stored.best_us(),
      stored.within(options.goal), options.goal * 100, options.seeds, stored.seconds());
  text +=
      fmt::format("{:<11}  {:^23}  {:>14}  {:>9}  {:^19}\n", "",
                  fmt::format("cost to reach {:g}%", options.goal * 100),
                  fmt::format("seeds in {:g}%", options.budget * 100), "whole", "gap in the end");
  text += fmt::format("{:<11}  {:>7} {:>7} {:>7}  {:>14}  {:>9}  {:>9} {:>9}\n", "strategy",
                      "median", "p90", "worst", "of cost", "search", "median", "worst");
  const auto percent = [](double share) { return fmt::format("{:.1f}%", share * 100); };
  for (const ReplayResult& result : results) {
    const std::vector<double> reach = column(result, &ReplayRun::time_to_reach, true);
    const std::vector<double> gaps = column(result, &ReplayRun::gap, false);
    const bool all = reach.size() == result.runs.size();
    text += fmt::format(
        "{:<11}  {:>7} {:>7} {:>7}  {:>14}  {:>9}  {:>9} {:>9}\n", result.strategy,
        percent(quantile(reach, 0.5)), percent(quantile(reach, 0.9)),
        all ? percent(quantile(reach, 1)) : fmt::format("{} no", result.runs.size() - reach.size()),
        fmt::format("{} of {}", within_budget(result, &ReplayRun::time_to_reach, options.budget),
                    result.runs.size()),
        percent(quantile(column(result, &ReplayRun::time, false), 0.5)),
        fmt::format("{:.2f}%", quantile(gaps, 0.5) * 100),
        fmt::format("{:.2f}%", quantile(gaps, 1) * 100));
  }
  return text;
}

Json replay_json(const StoredSamples& stored, const std::vector<ReplayResult>& results,
                 const ReplayOptions& options) {
  Json document = {{"configs", stored.configs()},
                   {"seconds", stored.seconds()},
                   {"sample_seconds", stored.sample_seconds()},
                   {"best_us", stored.best_us()},
                   {"goal", options.goal},
                   {"budget", options.budget},
                   {"within_goal", stored.within(options.goal)},
                   {"seeds", options.seeds},
                   {"strategies", Json::array()}};
  for (const ReplayResult& result : results) {
    const std::vector<double> time = column(result, &ReplayRun::time_to_reach, true);
    document["strategies"].push_back(
        {{"strategy", result.strategy},
         {"reached", time.size()},
         {"reached_in_budget", within_budget(result, &ReplayRun::time_to_reach, options.budget)},
         {"reached_in_budget_of_samples",
          within_budget(result, &ReplayRun::samples_to_reach, options.budget)},
         {"time_to_reach", spread(time)},
         {"samples_to_reach", spread(column(result, &ReplayRun::samples_to_reach, true))},
         {"time", spread(column(result, &ReplayRun::time, false))},
         {"gap", spread(column(result, &ReplayRun::gap, false))}});
  }
  return document;
}

}  // namespace fusescope::sweep
