#include "sweep/trial.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/error.hpp"
#include "base/json_reader.hpp"
#include "sweep/knob_json.hpp"

namespace fusescope::sweep {
namespace {

constexpr std::array<std::string_view, kVerdicts> kVerdictNames = {
    "ok", "illegal", "wrong_output", "aborted", "crashed", "timed_out"};

const std::vector<std::string>& keys() {
  static const std::vector<std::string> kKeys = {
      "id",         "label",   "config",           "verdict",    "reason",   "source", "median_us",
      "half_ci_us", "wall_us", "timeline_wall_us", "exposed_us", "steps_us", "seconds"};
  return kKeys;
}

}  // namespace

std::string_view name(Verdict verdict) {
  return kVerdictNames[static_cast<std::size_t>(verdict)];
}

std::string to_line(const Trial& trial) {
  OrderedJson line;
  line["id"] = trial.id;
  line["label"] = trial.label;
  line["config"] = to_json(trial.config);
  line["verdict"] = name(trial.verdict);
  line["reason"] = trial.reason;
  line["source"] = trial.source;
  line["median_us"] = trial.median_us;
  line["half_ci_us"] = trial.half_ci_us;
  line["wall_us"] = trial.wall_us;
  line["timeline_wall_us"] = trial.timeline_wall_us;
  line["exposed_us"] = trial.exposed_us;
  line["steps_us"] = trial.steps_us;
  line["seconds"] = trial.seconds;
  // A reason may quote bytes that are no UTF-8 (a path, a device's message): they must not cost the
  // trial its record.
  return line.dump(-1, ' ', false, OrderedJson::error_handler_t::replace);
}

Trial trial_from_line(std::string_view line, const std::string& file, const std::string& place) {
  const std::optional<Json> parsed = parse_json(line);
  if (!parsed) {
    throw InputError(
        {file, place, "is not a whole JSON object",
         "the line as fusescope wrote it; restore the file or use a new output folder"});
  }
  const JsonReader reader(file, *parsed, place);
  reader.only(keys());

  Trial trial;
  trial.id = static_cast<int>(reader.at("id").as_integer(0, std::numeric_limits<int>::max()));
  trial.label = reader.at("label").as_string();
  set_knobs(trial.config, reader.at("config"));
  const std::vector<std::string> verdicts(kVerdictNames.begin(), kVerdictNames.end());
  trial.verdict = static_cast<Verdict>(reader.at("verdict").as_choice(verdicts));
  trial.reason = reader.at("reason").as_string();
  trial.source = reader.at("source").as_string();
  trial.median_us = reader.at("median_us").as_number();
  trial.half_ci_us = reader.at("half_ci_us").as_number();
  const JsonReader walls = reader.at("wall_us");
  for (std::size_t i = 0; i < walls.size(); ++i) {
    trial.wall_us.push_back(walls.element(i).as_number());
  }
  trial.timeline_wall_us = reader.at("timeline_wall_us").as_number();
  trial.exposed_us = reader.at("exposed_us").as_number();
  const JsonReader steps = reader.at("steps_us");
  for (const std::string& step : steps.keys()) {
    trial.steps_us[step] = steps.at(step).as_number();
  }
  trial.seconds = reader.at("seconds").as_number();
  return trial;
}

}  // namespace fusescope::sweep
