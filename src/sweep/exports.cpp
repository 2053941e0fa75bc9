#include "sweep/exports.hpp"

#include <fmt/format.h>
#include <sys/utsname.h>

#include <numeric>
#include <set>

#include "sweep/knob_json.hpp"
#include "sweep/statistics.hpp"

namespace fusescope::sweep {
namespace {

std::string quoted(const std::string& cell) {
  if (cell.find_first_of(",\"\r\n") == std::string::npos) {
    return cell;
  }
  std::string text = "\"";
  for (const char character : cell) {
    text += character == '"' ? "\"\"" : std::string(1, character);
  }
  return text + "\"";
}

std::string rank_medians(const Trial& trial) {
  std::string text;
  for (const std::vector<double>& walls : trial.rank_wall_us) {
    text += fmt::format("{}{}", text.empty() ? "" : " ", median(walls));
  }
  return text;
}

const char* t4_invalidity(Verdict verdict) {
  switch (verdict) {
    case Verdict::ok:
      return "correct";
    case Verdict::illegal:
      return "constraints";
    case Verdict::wrong_output:
      return "correctness";
    case Verdict::hang:
      return "timeout";
    case Verdict::aborted:
    case Verdict::crashed:
    case Verdict::launch_failure:
    case Verdict::out_of_memory:
      break;
  }
  return "runtime";
}

Json t4_result(const Trial& trial) {
  const bool ok = trial.verdict == Verdict::ok;
  const bool simulated = trial.source.starts_with("simulated");
  const char* const objective = simulated ? "simulated_wall_us" : "wall_us";
  Json runtimes = Json::array();
  for (const double wall : trial.wall_us) {
    runtimes.push_back(wall / 1e3);
  }
  Json measurements = Json::array();
  if (ok) {
    measurements.push_back({{"name", objective}, {"value", trial.median_us}, {"unit", "us"}});
    measurements.push_back({{"name", "half_ci_us"}, {"value", trial.half_ci_us}, {"unit", "us"}});
    measurements.push_back(
        {{"name", "raw_median_us"}, {"value", trial.raw_median_us}, {"unit", "us"}});
  } else {
    measurements.push_back({{"name", "verdict"}, {"value", name(trial.verdict)}, {"unit", ""}});
    measurements.push_back({{"name", "reason"}, {"value", trial.reason}, {"unit", ""}});
  }
  const double sampled = std::accumulate(trial.wall_us.begin(), trial.wall_us.end(), 0.0) / 1e3;
  // The kernels are compiled with the program; set-up, checks and warm-up are not told apart.
  const Json times = {{"compilation_time", 0.0},
                      {"runtimes", runtimes},
                      {"framework", std::max(0.0, trial.seconds * 1e3 - sampled)},
                      {"search_algorithm", 0.0},
                      {"validation", 0.0}};
  return {{"configuration", Json::parse(to_json(trial.config).dump())},
          {"objectives", ok ? Json::array({objective}) : Json::array()},
          {"times", times},
          {"invalidity", t4_invalidity(trial.verdict)},
          {"correctness", ok ? 1 : 0},
          {"measurements", measurements}};
}

}  // namespace

std::string to_csv(const std::vector<Trial>& results) {
  std::set<std::string> steps;
  for (const Trial& trial : results) {
    for (const auto& [step, time] : trial.steps_us) {
      steps.insert(step);
    }
  }
  std::string text =
      "id,label,verdict,median_us,half_ci_us,raw_median_us,samples,visits,finalist,rank_us,"
      "exposed_us,timeline_wall_us";
  for (const Knob& knob : knobs()) {
    text += fmt::format(",{}", knob.name);
  }
  for (const std::string& step : steps) {
    text += fmt::format(",{}", quoted(step + " us"));
  }
  text += ",seconds,source,reason\r\n";
  for (const Trial& trial : results) {
    text += fmt::format("{},{},{},{},{},{},{},{},{},{},{},{}", trial.id, quoted(trial.label),
                        name(trial.verdict), trial.median_us, trial.half_ci_us, trial.raw_median_us,
                        trial.wall_us.size(), trial.pooled.size(),
                        trial.kind == TrialKind::finalist ? 1 : 0, rank_medians(trial),
                        trial.exposed_us, trial.timeline_wall_us);
    for (const Knob& knob : knobs()) {
      text += fmt::format(",{}", quoted(to_string(knob.get(trial.config))));
    }
    for (const std::string& step : steps) {
      const auto found = trial.steps_us.find(step);
      text += found == trial.steps_us.end() ? "," : fmt::format(",{}", found->second);
    }
    text += fmt::format(",{},{},{}\r\n", trial.seconds, quoted(trial.source), quoted(trial.reason));
  }
  return text;
}

Json to_t4(const std::vector<Trial>& results) {
  Json document = {{"schema_version", "1.0.0"}, {"results", Json::array()}};
  for (const Trial& trial : results) {
    if (trial.kind != TrialKind::rung) {
      document["results"].push_back(t4_result(trial));
    }
  }
  return document;
}

Json to_t4_metadata(const LogHeader& header) {
  Json device_query = {{"engine", header.engine},
                       {"device", header.device},
                       {"problem", header.problem},
                       {"problem_hash", header.problem_hash}};
  if (const int rest = rest_ms(header); rest > 0) {
    device_query["rest_ms"] = rest;
  }
  struct utsname system = {};
  const std::string operating_system =
      ::uname(&system) == 0
          ? fmt::format("{} {} {}", system.sysname, system.release, system.machine)
          : "unknown";
  return {
      {"schema_version", "1.0.0"},
      {"metadata",
       {{"hardware",
         {{"hardware_description", Json::array({header.device})},
          {"operating_system", operating_system}}},
        {"environment",
         {{"device_query", device_query}, {"requirements", Json::array({header.fusescope})}}}}}};
}

}  // namespace fusescope::sweep
