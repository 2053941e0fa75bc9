#include "sweep/trial.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/error.hpp"
#include "base/json_reader.hpp"
#include "sweep/knob_json.hpp"
#include "sweep/statistics.hpp"

namespace fusescope::sweep {
namespace {

constexpr std::array<std::string_view, kVerdicts> kVerdictNames = {
    "ok",   "illegal", "wrong_output",   "aborted",
    "hang", "crashed", "launch_failure", "out_of_memory"};
constexpr std::array<std::string_view, kTrialKinds> kKindNames = {"search", "rung", "base",
                                                                  "finalist"};

const std::vector<std::string>& keys() {
  static const std::vector<std::string> kKeys = {
      "id",           "kind",    "label",        "visit",        "config",           "verdict",
      "reason",       "source",  "median_us",    "half_ci_us",   "raw_median_us",    "drift",
      "throttle_mhz", "wall_us", "rank_wall_us", "sm_clock_mhz", "timeline_wall_us", "exposed_us",
      "steps_us",     "seconds"};
  return kKeys;
}

bool is_throttled(const Trial& trial, std::size_t sample) {
  return sample < trial.sm_clock_mhz.size() && trial.sm_clock_mhz[sample] > 0 &&
         trial.sm_clock_mhz[sample] < trial.throttle_mhz;
}

std::vector<double> numbers(const JsonReader& array) {
  std::vector<double> values;
  values.reserve(array.size());
  for (std::size_t i = 0; i < array.size(); ++i) {
    values.push_back(array.element(i).as_number());
  }
  return values;
}

}  // namespace

std::string_view name(Verdict verdict) {
  return kVerdictNames[static_cast<std::size_t>(verdict)];
}

std::string_view name(TrialKind kind) {
  return kKindNames[static_cast<std::size_t>(kind)];
}

int throttled_samples(const Trial& trial) {
  int count = 0;
  for (std::size_t i = 0; i < trial.wall_us.size(); ++i) {
    count += is_throttled(trial, i) ? 1 : 0;
  }
  return count;
}

int samples_set_apart(const Trial& trial) {
  const int throttled = throttled_samples(trial);
  return 2 * throttled > std::ssize(trial.wall_us) ? 0 : throttled;
}

std::vector<double> counted_walls(const Trial& trial) {
  const bool all = samples_set_apart(trial) == 0;
  std::vector<double> walls;
  walls.reserve(trial.wall_us.size());
  for (std::size_t i = 0; i < trial.wall_us.size(); ++i) {
    if (all || !is_throttled(trial, i)) {
      walls.push_back(trial.wall_us[i] / trial.drift);
    }
  }
  return walls;
}

void set_medians(Trial& trial) {
  trial.raw_median_us = median(trial.wall_us);
  const MedianInterval interval = median_interval(counted_walls(trial));
  trial.median_us = interval.median;
  trial.half_ci_us = interval.half_width();
}

std::string to_line(const Trial& trial) {
  OrderedJson line;
  line["id"] = trial.id;
  line["kind"] = name(trial.kind);
  line["label"] = trial.label;
  line["visit"] = trial.visit;
  line["config"] = to_json(trial.config);
  line["verdict"] = name(trial.verdict);
  line["reason"] = trial.reason;
  line["source"] = trial.source;
  line["median_us"] = trial.median_us;
  line["half_ci_us"] = trial.half_ci_us;
  line["raw_median_us"] = trial.raw_median_us;
  line["drift"] = trial.drift;
  line["throttle_mhz"] = trial.throttle_mhz;
  line["wall_us"] = trial.wall_us;
  line["rank_wall_us"] = trial.rank_wall_us;
  line["sm_clock_mhz"] = trial.sm_clock_mhz;
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
  const std::vector<std::string> kinds(kKindNames.begin(), kKindNames.end());
  trial.kind = static_cast<TrialKind>(reader.at("kind").as_choice(kinds));
  trial.label = reader.at("label").as_string();
  trial.visit = static_cast<int>(reader.at("visit").as_integer(0, std::numeric_limits<int>::max()));
  set_knobs(trial.config, reader.at("config"));
  const std::vector<std::string> verdicts(kVerdictNames.begin(), kVerdictNames.end());
  trial.verdict = static_cast<Verdict>(reader.at("verdict").as_choice(verdicts));
  trial.reason = reader.at("reason").as_string();
  trial.source = reader.at("source").as_string();
  trial.median_us = reader.at("median_us").as_number();
  trial.half_ci_us = reader.at("half_ci_us").as_number();
  trial.raw_median_us = reader.at("raw_median_us").as_number();
  trial.drift = reader.at("drift").as_number(1e-6, 1e6);
  trial.throttle_mhz = reader.at("throttle_mhz").as_number();
  trial.wall_us = numbers(reader.at("wall_us"));
  const JsonReader ranks = reader.at("rank_wall_us");
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    trial.rank_wall_us.push_back(numbers(ranks.element(rank)));
  }
  trial.sm_clock_mhz = numbers(reader.at("sm_clock_mhz"));
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
