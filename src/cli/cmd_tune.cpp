// fusescope tune: finds the fastest config of a problem with few measurements and writes it into the
// tuned table; or judges strategies on a log that holds a whole space.

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <map>
#include <memory>

#include "base/error.hpp"
#include "base/version.hpp"
#include "cli/command.hpp"
#include "cli/common_options.hpp"
#include "cli/files.hpp"
#include "cli/prediction.hpp"
#include "cli/sweep_folder.hpp"
#include "cli/sweep_session.hpp"
#include "cli/sweep_worker.hpp"
#include "sweep/replay.hpp"
#include "sweep/results.hpp"
#include "sweep/summary.hpp"
#include "sweep/tuned_table.hpp"

namespace fusescope::cli {
namespace {

struct TuneOptions {
  std::string sweep = "tune";
  std::string shape;
  std::string routing;
  std::string engine;
  std::string profile;
  std::string gemm;
  std::string strategy;
  std::string guide;
  std::optional<std::uint64_t> seed;
  std::optional<int> rest_ms;
  long long trials = 0;
  double seconds = 0;
  std::string out;
  std::string table;
  std::string replay;
  std::vector<std::string> compare;
  sweep::ReplayOptions replays;
  bool json = false;
};

constexpr const char* kFooter =
    "\nThe table (tuned.json here, or $FUSESCOPE_TUNED, or --table) then holds the winner for this "
    "device,\n"
    "shape and kind of routing; \"run --config tuned\" uses it, before any that fusescope ships\n"
    "(\"list tuned\"). What SWEEP names is the space and the rules; the search is sim_guided "
    "where\n"
    "the sweep says nothing else: the simulator ranks, the engine measures the front.\n"
    "\n--replay judges strategies on the folder of a sweep that measured its whole space: each "
    "seed's\n"
    "search gets stored samples and pays what they cost.\n"
    "\nExamples:\n"
    "  fusescope tune --shape qwen3-30b-a3b --routing zipf:1.2\n"
    "  fusescope tune sm-split --strategy racing --seed 3\n"
    "  fusescope tune --rest-ms 10 --table rested.json\n"
    "  fusescope tune --compare out/a/best/run.json out/b/best/run.json\n"
    "  fusescope tune --replay out/seed-tp2-exhaustive --seeds 100";

sweep::SweepConfig load_config(const TuneOptions& options) {
  const std::string file = find_sweep(options.sweep);
  Json document = read_json_file(file);
  if (!document.is_object()) {
    return sweep::parse_sweep_config(document, file);  // says what is wrong with it
  }
  const auto set = [&](const char* key, const std::string& value) {
    if (!value.empty()) {
      document[key] = value;
    }
  };
  set("shape", options.shape);
  set("routing", options.routing);
  set("engine", options.engine);
  set("profile", options.profile);
  if (!options.gemm.empty()) {
    document["base"]["gemm"] = options.gemm;
  }
  Json search = document.value("search", Json::object());
  if (!options.strategy.empty()) {
    search["strategy"] = options.strategy;
    search.erase("profile");
  } else if (!search.contains("strategy") || search["strategy"] == "grid") {
    search["strategy"] = "sim_guided";
  }
  if (!options.guide.empty()) {
    search["profile"] = options.guide;
  }
  if (options.seed) {
    search["seed"] = *options.seed;
  }
  if (options.trials > 0) {
    search["budget"]["trials"] = options.trials;
  }
  if (options.seconds > 0) {
    search["budget"]["seconds"] = options.seconds;
  }
  document["search"] = search;
  set_rest(document, options.rest_ms);
  return sweep::parse_sweep_config(document, file);
}

std::string distance(const sweep::TunedEntry& entry) {
  if (!entry.runner_up) {
    return "No other config ran.";
  }
  return fmt::format("Runner-up {}: {}", describe(*entry.runner_up),
                     describe(entry.runner_up->config, entry.config));
}

// Opens the sweep that the options mean, in its folder.
SweepSession open_session(const TuneOptions& options, const std::string& suffix,
                          std::vector<Config> compare, const Context& context) {
  sweep::SweepConfig config = load_config(options);
  SessionOptions session_options;
  session_options.out =
      options.out.empty()
          ? joined("out", fmt::format("{}-{}{}", config.name, config.shape.name, suffix))
          : options.out;
  session_options.compare = std::move(compare);
  return SweepSession(std::move(config), std::move(session_options), context);
}

// Configs of files, timed in turns: is one of them faster, or do they tie?
int compare(const TuneOptions& options, const Context& context) {
  std::vector<Config> configs;
  for (const std::string& file : options.compare) {
    const Config config = ConfigOptions{{}, file, {}}.config();
    if (std::find(configs.begin(), configs.end(), config) == configs.end()) {
      configs.push_back(config);
    }
  }
  if (configs.size() == 1) {
    std::printf("They are one config: %s\n", describe(configs.front()).c_str());
    return kFine;
  }
  SweepSession session = open_session(options, "-compare", std::move(configs), context);
  session.run();
  if (session.stopped()) {
    return kInterrupted;
  }
  std::printf("%s\n%s", sweep::summary_text(session.trials(), {options.compare.size(), {}}).c_str(),
              sweep::timing_text(session.trials(), session.outcome()).c_str());
  const std::optional<sweep::TunedEntry> entry = sweep::tuned_entry(
      session.trials(), sweep::tuned_key(session.engine(), session.device(), session.problem()));
  if (!entry) {
    return kCheckFailed;
  }
  std::printf("%s\n", distance(*entry).c_str());
  return kFine;
}

int tune(const TuneOptions& options, const Context& context) {
  const std::string table = options.table.empty() ? sweep::tuned_table_path() : options.table;
  // What would keep the winner from being written is said before measuring.
  static_cast<void>(sweep::read_tuned_table(table));
  if (const std::string folder = std::filesystem::path(table).parent_path(); !folder.empty()) {
    make_folder(folder, "--table");
  }
  SweepSession session = open_session(options, "", {}, context);
  session.run();
  std::fprintf(stderr, "%s", sweep::timing_text(session.trials(), session.outcome()).c_str());
  if (session.stopped()) {
    std::fprintf(stderr, "Interrupted. The log is whole; the same command goes on from here.\n");
    return kInterrupted;
  }
  std::optional<sweep::TunedEntry> entry = sweep::tuned_entry(
      session.trials(), sweep::tuned_key(session.engine(), session.device(), session.problem()));
  if (!entry) {
    std::fprintf(stderr, "fusescope: %s: no trial ran\n", session.folder().c_str());
    return kCheckFailed;
  }
  entry->problem = describe(session.problem());
  entry->rest_ms = session.rest_ms();
  entry->fusescope = version_line();
  entry->log = session.log_path();
  entry->date = utc_now();
  std::optional<sweep::TunedEntry> replaced;
  const Json document = sweep::with_entry(sweep::read_tuned_table(table), *entry, replaced);
  write_text(table, document.dump(1) + "\n");
  if (options.json) {
    std::printf("%s\n", document.at("entries").back().dump(2).c_str());
    return kFine;
  }
  const std::string half =
      entry->half_ci_us > 0 ? fmt::format(" +- {:.1f}", entry->half_ci_us) : "";
  std::printf("%s, %s\nWinner    %.1f%s us: %s\n%s\n", entry->problem.c_str(),
              describe_source(*entry).c_str(), entry->wall_us, half.c_str(),
              describe(entry->config).c_str(), distance(*entry).c_str());
  if (replaced) {
    const std::string otherwise = replaced->rest_ms == entry->rest_ms
                                      ? ""
                                      : " (" + engine::describe_rest(replaced->rest_ms) + ")";
    std::printf("It takes the place of %.1f us%s of %s: %s\n", replaced->wall_us, otherwise.c_str(),
                replaced->date.c_str(), describe(replaced->config).c_str());
  }
  std::printf("Table: %s; trials: %s\n", table.c_str(), session.log_path().c_str());
  return kFine;
}

// Predictions are the same for every seed: each config is simulated once.
sweep::Predict remembered(sweep::Predict predict) {
  return
      [predict = std::move(predict), known = std::make_shared<std::map<std::uint64_t, double>>()](
          const std::vector<Config>& configs) {
        if (known->empty()) {
          const std::vector<double> walls = predict(configs);
          for (std::size_t i = 0; i < configs.size(); ++i) {
            (*known)[hash(configs[i])] = walls[i];
          }
        }
        std::vector<double> walls;
        for (const Config& config : configs) {
          walls.push_back(known->at(hash(config)));
        }
        return walls;
      };
}

int replay(const TuneOptions& options) {
  const SweepRecord record = read_sweep_folder(options.replay);
  const sweep::StoredSamples stored(record.log, record.config);
  const Problem problem = make_sweep_problem(record.config);
  const sweep::Predict predict = remembered(make_prediction(options.guide, problem));
  std::vector<sweep::SearchKind> kinds = {sweep::SearchKind::sim_guided, sweep::SearchKind::racing,
                                          sweep::SearchKind::local, sweep::SearchKind::random};
  if (!options.strategy.empty()) {
    std::erase_if(kinds, [&](sweep::SearchKind kind) {
      return sweep::name(kind) != options.strategy && kind != sweep::SearchKind::random;
    });
    if (kinds.size() < 2 && options.strategy != "random") {
      throw InputError({"--strategy", "", "\"" + options.strategy + "\" cannot be replayed",
                        "sim_guided, racing, local or random"});
    }
  }
  std::vector<sweep::ReplayResult> results;
  for (const sweep::SearchKind kind : kinds) {
    results.push_back(sweep::replay_strategy(stored, kind, options.replays, predict));
  }
  if (options.json) {
    std::printf("%s\n", sweep::replay_json(stored, results, options.replays).dump(2).c_str());
  } else {
    std::printf("%s", sweep::replay_text(stored, results, options.replays).c_str());
  }
  return kFine;
}

}  // namespace

void add_tune(CLI::App& app, Context& context) {
  const auto options = std::make_shared<TuneOptions>();
  CLI::App* command =
      app.add_subcommand("tune", "Find the fastest config with few measurements and keep it");
  command->add_option("sweep", options->sweep, "The space to search: a sweep's file or name")
      ->type_name("FILE|NAME")
      ->capture_default_str();
  command->add_option("--shape", options->shape, "In place of the sweep's shape")
      ->type_name("SHAPE");
  command->add_option("--routing", options->routing, "In place of the sweep's routing")
      ->type_name("ROUTING");
  command->add_option("--engine", options->engine, "In place of the sweep's: auto, sim or cuda")
      ->type_name("ENGINE");
  command->add_option("--profile", options->profile, "In place of the sweep's device profile")
      ->type_name("PROFILE");
  add_gemm_option(*command, options->gemm);
  command
      ->add_option("--strategy", options->strategy,
                   "grid, random, local, racing or sim_guided (default: the sweep's, sim_guided in "
                   "place of grid)")
      ->type_name("NAME");
  command
      ->add_option("--guide", options->guide,
                   "Profile of the simulator that ranks for sim_guided (default: h200-nvlink)")
      ->type_name("PROFILE");
  command->add_option("--seed", options->seed, "Seed of the search");
  add_rest_option(*command, options->rest_ms);
  command->add_option("--trials", options->trials, "Stop after that many measurements")
      ->check(CLI::PositiveNumber);
  command->add_option("--seconds", options->seconds, "Start no measurement after that long")
      ->check(CLI::PositiveNumber);
  command->add_option("--out", options->out, "Folder for the trials (default: out/NAME-SHAPE)")
      ->type_name("DIR");
  command->add_option("--table", options->table, "The tuned table")->type_name("FILE");
  command
      ->add_option("--replay", options->replay,
                   "Judge strategies on the folder of a sweep of a whole space")
      ->type_name("DIR");
  command
      ->add_option("--compare", options->compare,
                   "Instead of a search: time the configs of these files in turns (of knobs, or a "
                   "run.json such as best/run.json of a sweep)")
      ->type_name("FILE FILE...")
      ->expected(2, 100);
  command->add_option("--seeds", options->replays.seeds, "Replays of each strategy")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  command->add_option("--goal", options->replays.goal, "How near to the best a replay must come")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  command->add_flag("--json", options->json, "Print JSON instead of text");
  command->footer(kFooter);
  command->callback([options, &context] {
    context.selected = [options, &context] {
      if (!options->replay.empty()) {
        return replay(*options);
      }
      return options->compare.empty() ? tune(*options, context) : compare(*options, context);
    };
  });
}

}  // namespace fusescope::cli
