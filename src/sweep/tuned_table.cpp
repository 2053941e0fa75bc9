#include "sweep/tuned_table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "sweep/knob_json.hpp"

namespace fusescope::sweep {
namespace {

constexpr const char* kFormat = "fusescope-tuned";

Json plain(const Config& config) {
  return Json::parse(to_json(config).dump());
}

Json to_json(const TunedEntry& entry) {
  Json runner_up;
  if (entry.runner_up) {
    runner_up = {{"config", plain(entry.runner_up->config)},
                 {"slower", entry.runner_up->slower},
                 {"low", entry.runner_up->low},
                 {"high", entry.runner_up->high},
                 {"tie", entry.runner_up->tie}};
  }
  return {{"engine", entry.key.engine},
          {"device", entry.key.device},
          {"shape", entry.key.shape},
          {"routing", entry.key.routing},
          {"config", plain(entry.config)},
          {"wall_us", entry.wall_us},
          {"half_ci_us", entry.half_ci_us},
          {"runner_up", runner_up},
          {"source", entry.source},
          {"problem", entry.problem},
          {"fusescope", entry.fusescope},
          {"log", entry.log},
          {"date", entry.date}};
}

TunedEntry entry_from(const JsonReader& reader) {
  TunedEntry entry;
  entry.key = {reader.at("engine").as_string(), reader.at("device").as_string(),
               reader.at("shape").as_string(), reader.at("routing").as_string()};
  set_knobs(entry.config, reader.at("config"));
  entry.wall_us = reader.at("wall_us").as_number();
  entry.half_ci_us = reader.at("half_ci_us").as_number();
  if (const JsonReader rival = reader.at("runner_up"); !rival.value().is_null()) {
    RunnerUp runner_up;
    set_knobs(runner_up.config, rival.at("config"));
    runner_up.slower = rival.at("slower").as_number();
    runner_up.low = rival.at("low").as_number();
    runner_up.high = rival.at("high").as_number();
    runner_up.tie = rival.at("tie").as_bool();
    entry.runner_up = runner_up;
  }
  entry.source = reader.at("source").as_string();
  entry.problem = reader.at("problem").as_string();
  entry.fusescope = reader.at("fusescope").as_string();
  entry.log = reader.at("log").as_string();
  entry.date = reader.at("date").as_string();
  return entry;
}

}  // namespace

TunedKey tuned_key(const std::string& engine, const DeviceLimits& device, const Problem& problem) {
  const Shape& shape = problem.shape;
  return {engine, device.name,
          fmt::format("R={} T={} H={} E={} K={} I={}", shape.ranks, shape.tokens_per_rank,
                      shape.hidden, shape.experts, shape.topk, shape.intermediate),
          form(problem.routing_spec)};
}

std::string describe(const TunedKey& key) {
  return fmt::format("{} on {} ({}), {}", key.shape, key.device, key.engine, key.routing);
}

std::optional<TunedEntry> tuned_entry(const std::vector<Trial>& trials, const TunedKey& key) {
  const std::vector<Ranked> ranking = rank(trials);
  if (ranking.empty()) {
    return std::nullopt;
  }
  const Trial& best = ranking.front().trial;
  TunedEntry entry;
  entry.key = key;
  entry.config = best.config;
  entry.wall_us = best.median_us;
  entry.half_ci_us = best.half_ci_us;
  entry.source = best.source;
  if (ranking.size() > 1) {
    const Trial& second = ranking[1].trial;
    RunnerUp runner_up;
    runner_up.config = second.config;
    runner_up.slower = second.median_us / best.median_us - 1;
    runner_up.low = runner_up.high = runner_up.slower;
    if (best.kind == TrialKind::finalist && second.kind == TrialKind::finalist) {
      const RatioInterval interval = compare_rounds(rounds_of(best), rounds_of(second));
      runner_up.low = interval.low;
      runner_up.high = interval.high;
    }
    runner_up.tie = ranking[1].ties_with_best;
    entry.runner_up = runner_up;
  }
  return entry;
}

std::string tuned_table_path() {
  const char* const given = std::getenv("FUSESCOPE_TUNED");
  return given != nullptr && *given != '\0' ? given : "tuned.json";
}

std::vector<TunedEntry> read_tuned_table(const std::string& path) {
  if (!std::filesystem::exists(path)) {
    return {};
  }
  const Json document = read_json_file(path);
  const JsonReader reader(path, document);
  if (!reader.has("format") || reader.at("format").value() != kFormat) {
    reader.refuse("is not a tuned table", "a file that \"fusescope tune\" wrote, or a new one");
  }
  std::vector<TunedEntry> table;
  const JsonReader entries = reader.at("entries");
  for (std::size_t i = 0; i < entries.size(); ++i) {
    table.push_back(entry_from(entries.element(i)));
  }
  return table;
}

Json with_entry(const std::vector<TunedEntry>& table, const TunedEntry& entry,
                std::optional<TunedEntry>& replaced) {
  Json document = {{"format", kFormat}, {"version", 1}, {"entries", Json::array()}};
  for (const TunedEntry& each : table) {
    if (each.key == entry.key) {
      replaced = each;
    } else {
      document["entries"].push_back(to_json(each));
    }
  }
  document["entries"].push_back(to_json(entry));
  return document;
}

TunedEntry tuned_config(const std::string& path, const TunedKey& key) {
  const std::vector<TunedEntry> table = read_tuned_table(path);
  const auto found = std::find_if(table.begin(), table.end(),
                                  [&](const TunedEntry& entry) { return entry.key == key; });
  if (found != table.end()) {
    return *found;
  }
  std::string there;
  for (const TunedEntry& entry : table) {
    there += (there.empty() ? "" : "; ") + describe(entry.key);
  }
  throw InputError({path, "", "has no winner for " + describe(key),
                    there.empty() ? "\"fusescope tune\" writes one"
                                  : "\"fusescope tune\" first, or what the table has: " + there});
}

}  // namespace fusescope::sweep
