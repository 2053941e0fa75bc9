#include "sweep/tuned_table.hpp"

#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "base/json_names.hpp"
#include "engine/engine.hpp"
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
  Json json = {{"engine", entry.key.engine},
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
  if (entry.rest_ms > 0) {
    json["rest_ms"] = entry.rest_ms;
  }
  return json;
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
  if (reader.has("rest_ms")) {
    entry.rest_ms = static_cast<int>(reader.at("rest_ms").as_integer(0, engine::kMostRestMs));
  }
  entry.problem = reader.at("problem").as_string();
  entry.fusescope = reader.at("fusescope").as_string();
  entry.log = reader.at("log").as_string();
  entry.date = reader.at("date").as_string();
  return entry;
}

// "--set A=1 B=2 (NVIDIA H200 (cuda), uniform)"
std::string set_by_hand(const TunedEntry& entry) {
  const std::string knobs =
      entry.config == Config{} ? "no --set at all" : "--set " + describe(entry.config);
  return fmt::format("{} ({} ({}), {})", knobs, entry.key.device, entry.key.engine,
                     entry.key.routing);
}

// What else a problem without a winner can be run with: another machine's entries are not taken for it, but their
// knobs can be set. "" where the tables are empty.
std::string instead_of_a_winner(const std::vector<TunedTable>& tables, const TunedKey& key) {
  std::string of_this_shape;
  bool any = false;
  for (const TunedTable& table : tables) {
    any = any || !table.entries.empty();
    for (const TunedEntry& entry : table.entries) {
      const bool same_machine = entry.key.engine == key.engine && entry.key.device == key.device;
      if (entry.key.shape == key.shape && !same_machine) {
        of_this_shape += (of_this_shape.empty() ? "" : "; ") + set_by_hand(entry);
      }
    }
  }
  if (!of_this_shape.empty()) {
    return fmt::format(
        "; or, in place of --config tuned, what another machine's entry for this shape has, as "
        "far as {} runs it: {}",
        key.device, of_this_shape);
  }
  return any ? "; or, in place of --config tuned, --set KNOB=VALUE ... from \"list tuned\"" : "";
}

}  // namespace

std::string shape_numbers(const Shape& shape) {
  return fmt::format("R={} T={} H={} E={} K={} I={}", shape.ranks, shape.tokens_per_rank,
                     shape.hidden, shape.experts, shape.topk, shape.intermediate);
}

TunedKey tuned_key(const std::string& engine, const DeviceLimits& device, const Problem& problem) {
  return {engine, device.name, shape_numbers(problem.shape), form(problem.routing_spec)};
}

std::string describe(const TunedKey& key) {
  return fmt::format("{} on {} ({}), {}", key.shape, key.device, key.engine, key.routing);
}

std::string describe(const RunnerUp& runner_up) {
  const std::string interval = runner_up.low < runner_up.high
                                   ? fmt::format(" (95% {:+.2f}% to {:+.2f}%, timed in turns)",
                                                 runner_up.low * 100, runner_up.high * 100)
                                   : "";
  return fmt::format("{:+.2f}%{}{}", runner_up.slower * 100, interval,
                     runner_up.tie ? ", a tie" : "");
}

std::string describe(const TunedTable& table) {
  return (table.shipped ? "shipped table " : "own table ") + table.path;
}

std::string describe_source(const TunedEntry& entry) {
  return entry.key.engine == "sim" ? entry.source
                                   : entry.source + ", " + engine::describe_rest(entry.rest_ms);
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
    runner_up.slower = slower_than(second, best);
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

std::vector<TunedTable> tuned_tables(const std::string& own) {
  std::vector<TunedTable> tables = {{own, false, read_tuned_table(own)}};
  const std::filesystem::path folder = std::filesystem::path(sweeps_folder()) / "tuned";
  for (const std::string& name : json_names(folder.string())) {
    const std::string path = (folder / (name + ".json")).string();
    tables.push_back({path, true, read_tuned_table(path)});
  }
  return tables;
}

TunedChoice tuned_choice(const std::vector<TunedTable>& tables, const TunedKey& key, int rest_ms) {
  std::string there;
  for (const TunedTable& table : tables) {
    std::string entries;
    for (const TunedEntry& entry : table.entries) {
      if (entry.key == key) {
        const bool differs = key.engine != "sim" && entry.rest_ms != rest_ms;
        return {entry, fmt::format(
                           "{}: {:.1f} us, {}, {}; {}{}", describe(table), entry.wall_us,
                           describe_source(entry), entry.date,
                           entry.runner_up ? "runner-up " + describe(*entry.runner_up)
                                           : "no other config ran",
                           differs ? "; this run differs: " + engine::describe_rest(rest_ms) : "")};
      }
      if (entry.key.engine == key.engine) {  // another's is never taken
        entries += (entries.empty() ? "" : "; ") + describe(entry.key);
      }
    }
    if (!entries.empty()) {
      there += fmt::format("; or what the {} has: {}", describe(table), entries);
    }
  }
  throw InputError({tables.front().path, "",
                    "has no winner for " + describe(key) + ", nor has a shipped table",
                    "an entry that \"fusescope tune\" makes with the same --shape, --routing, "
                    "--engine and --profile" +
                        there + instead_of_a_winner(tables, key)});
}

}  // namespace fusescope::sweep
