#include <nlohmann/json.hpp>

#include "analysis/compare.hpp"

namespace fusescope::analysis {
namespace {

using Json = nlohmann::ordered_json;

Json run_json(const ComparedRun& run) {
  Json json = {{"name", run.name},     {"problem", run.problem},
               {"config", run.config}, {"provenance", timeline::name(run.provenance)},
               {"device", run.device}, {"samples", run.samples_us.size()}};
  if (!run.sampling.empty()) {
    json["sampling"] = run.sampling;
  }
  return json;
}

Json difference_json(const Difference& difference) {
  return {{"name", difference.name},
          {"a_us", difference.a_us},
          {"b_us", difference.b_us},
          {"delta_us", difference.delta_us()},
          {"change", name(difference.change)}};
}

Json list(const std::vector<Difference>& differences) {
  Json json = Json::array();
  for (const Difference& difference : differences) {
    json.push_back(difference_json(difference));
  }
  return json;
}

}  // namespace

std::string to_json(const Comparison& comparison) {
  Json json;
  json["a"] = run_json(comparison.a);
  json["b"] = run_json(comparison.b);
  json["headline"] = comparison.headline;
  json["caveats"] = comparison.caveats;
  json["wall"] = difference_json(comparison.wall);
  if (comparison.interval) {
    json["wall"]["interval_us"] = {comparison.interval->low_us, comparison.interval->high_us};
  }
  if (comparison.iteration_noise_us) {
    json["iteration_noise_us"] = *comparison.iteration_noise_us;
  }
  json["critical_path"] = list(comparison.steps);
  json["sm_time"] = list(comparison.uses);
  return json.dump(2);
}

}  // namespace fusescope::analysis
