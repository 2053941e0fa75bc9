#include "cli/run_folder.hpp"

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "base/error.hpp"
#include "base/version.hpp"
#include "cli/files.hpp"
#include "cli/run_rungs.hpp"
#include "sweep/knob_json.hpp"
#include "sweep/sweep_config.hpp"
#include "timeline/store.hpp"

namespace fusescope::cli {
namespace {

constexpr const char* kFormat = "fusescope-run";

std::string problem_hash(const Problem& problem) {
  return sweep::hex(hash(problem));
}

// What only a run on GPUs has.
Json measured(const engine::RunResult& result, int rest_ms) {
  Json phases = Json::array();
  for (const engine::PhaseSpan& phase : result.phases) {
    phases.push_back(
        {{"gpu", phase.device}, {"phase", timeline::name(phase.kind)}, {"us", phase.us}});
  }
  Json rank_walls = Json::array();
  std::vector<double> clocks;
  for (const engine::Sample& sample : result.samples) {
    rank_walls.push_back(sample.rank_wall_us);
    clocks.push_back(sample.sm_clock_mhz);
  }
  const Spread wall = wall_spread(result);
  Json measured = {{"gpus", result.gpus},
                   {"gemm", result.gemm},
                   {"collectives", result.collectives},
                   {"relative_error", result.relative_error},
                   {"wall_us_10_to_90_percent", {wall.low, wall.high}},
                   {"sm_clock_mhz", {{"median", spread(clocks).median}, {"samples", clocks}}},
                   {"rank_wall_us", rank_walls},
                   {"phases", phases}};
  if (rest_ms > 0) {
    measured["rest_ms"] = rest_ms;
  }
  return measured;
}

// How its timeline was made, and whether it is sound.
Json recorded(const Run& run) {
  const timeline::Meta& meta = run.result.timeline->meta;
  Json recorded = {{"check", run.timeline_violation.empty() ? "passed" : run.timeline_violation},
                   {"iteration", meta.chosen},
                   {"dropped", meta.dropped},
                   {"clock_bound_ns", meta.clock_bound_ns}};
  if (meta.recorded_us > 0) {
    recorded["clocks"] = meta.clocks;
    recorded["median_us_without_records"] = meta.unrecorded_us;
    recorded["median_us_with_records"] = meta.recorded_us;
    recorded["sm_clock_mhz"] = {{"dispatch_gemm", meta.dispatch_clock_mhz},
                                {"gemm_combine_push", meta.combine_clock_mhz}};
  }
  return recorded;
}

}  // namespace

Spread spread(std::vector<double> values) {
  if (values.empty()) {
    return {};
  }
  std::sort(values.begin(), values.end());
  const auto at = [&](double share) {
    return values[static_cast<std::size_t>(
        std::lround(share * static_cast<double>(values.size() - 1)))];
  };
  return {at(0.1), at(0.5), at(0.9)};
}

Spread wall_spread(const engine::RunResult& result) {
  std::vector<double> walls;
  for (const engine::Sample& sample : result.samples) {
    walls.push_back(sample.wall_us);
  }
  return spread(walls);
}

Run run_once(engine::Engine& engine, const engine::RunRequest& request) {
  Run run;
  run.result = engine.run(request);
  std::vector<double> walls;
  for (const engine::Sample& sample : run.result.samples) {
    walls.push_back(sample.wall_us);
  }
  if (walls.empty()) {
    throw CheckFailure("the engine returned no sample");
  }
  run.wall_us = sweep::median_interval(walls);
  run.rungs = rungs_of(request, run.result, engine.device());
  if (run.rungs) {
    analysis::hold_against(*run.rungs, run.wall_us.median, run.wall_us.half_width());
  }
  if (run.result.timeline) {
    run.timeline_violation = timeline::check(*run.result.timeline);
    if (run.timeline_violation.empty()) {
      run.attribution = analysis::attribute(*run.result.timeline);
      if (run.rungs) {
        run.attribution->exposure =
            analysis::state_exposure(*run.result.timeline, *run.attribution, &*run.rungs);
      }
    }
  }
  return run;
}

Json run_document(const engine::Engine& engine, const engine::RunRequest& request, const Run& run,
                  int attribution_rows) {
  Json samples = Json::array();
  for (const engine::Sample& sample : run.result.samples) {
    samples.push_back(sample.wall_us);
  }
  Json document = {{"format", kFormat},
                   {"version", 1},
                   {"fusescope", version_line()},
                   {"command", request.command},
                   {"date", utc_now()},
                   {"engine", engine.name()},
                   {"device", engine.identity()},
                   {"provenance", timeline::name(run.result.provenance)},
                   {"source", run.result.source},
                   {"problem", describe(*request.problem)},
                   {"problem_hash", problem_hash(*request.problem)},
                   {"config", Json::parse(sweep::to_json(request.config).dump())},
                   {"seed", request.seed},
                   {"wall_us",
                    {{"median", run.wall_us.median},
                     {"half_ci", run.wall_us.half_width()},
                     {"samples", samples}}}};
  if (run.result.provenance == timeline::Provenance::measured) {
    document["measured"] = measured(run.result, request.rest_ms);
  }
  if (run.result.timeline) {
    document["timeline"] = recorded(run);
  } else if (!run.result.why_no_timeline.empty()) {
    document["timeline"] = {{"missing", run.result.why_no_timeline}};
  }
  if (run.rungs) {
    document["rungs"] = rungs_document(*run.rungs, run.result);
  }
  if (run.attribution) {
    document["attribution"] =
        Json::parse(analysis::to_json(*run.attribution, *run.result.timeline, attribution_rows));
  }
  return document;
}

bool holds_run(const std::string& folder) {
  return std::filesystem::is_regular_file(joined(folder, kRunFile));
}

void require_free(const std::string& folder, const engine::RunRequest& request, bool force) {
  if (force || is_missing_or_empty(folder)) {
    return;
  }
  const std::string accepted = "an empty or new folder, or --force";
  if (!holds_run(folder)) {
    throw InputError(
        {"--out", folder,
         std::filesystem::is_directory(folder) ? "holds other files" : "is not a folder",
         accepted});
  }
  const std::string file = joined(folder, kRunFile);
  const Json document = read_json_file(file);
  const JsonReader reader(file, document);
  if (!reader.has("format") || reader.at("format").as_string() != kFormat) {
    throw InputError({"--out", folder, "its run.json is not fusescope's", accepted});
  }
  Config config;
  sweep::set_knobs(config, reader.at("config"));
  const bool repeat = config == request.config &&
                      reader.at("problem_hash").as_string() == problem_hash(*request.problem);
  if (!repeat) {
    throw InputError(
        {"--out", folder,
         "holds another run: " + reader.at("problem").as_string() + ", " + describe(config),
         accepted});
  }
}

void write_run(const std::string& folder, const Json& document, const Run& run) {
  make_folder(folder, "--out");
  if (run.result.timeline) {
    timeline::save_timeline(*run.result.timeline, joined(folder, kTimelineFile));
  } else {
    std::filesystem::remove(
        joined(folder, kTimelineFile));  // an earlier run's would be mistaken for it
  }
  write_text(joined(folder, kRunFile), document.dump(2) + "\n");
}

std::string RunRecord::sampling() const {
  return provenance == timeline::Provenance::measured ? engine::describe_rest(rest_ms) : "";
}

RunRecord read_run(const std::string& folder) {
  const std::string file = joined(folder, kRunFile);
  const Json document = read_json_file(file);
  const JsonReader reader(file, document);
  RunRecord record;
  record.fusescope = reader.at("fusescope").as_string();
  record.command = reader.at("command").as_string();
  record.date = reader.at("date").as_string();
  record.engine = reader.at("engine").as_string();
  record.source = reader.at("source").as_string();
  record.problem = reader.at("problem").as_string();
  sweep::set_knobs(record.config, reader.at("config"));
  record.median_us = reader.at("wall_us").at("median").as_number();
  record.half_ci_us = reader.at("wall_us").at("half_ci").as_number();
  record.device = reader.at("device").as_string();
  record.problem_hash = reader.at("problem_hash").as_string();
  record.provenance = static_cast<timeline::Provenance>(
      reader.at("provenance").as_choice({"measured", "simulated"}));
  if (reader.has("measured") && reader.at("measured").has("rest_ms")) {
    record.rest_ms =
        static_cast<int>(reader.at("measured").at("rest_ms").as_integer(0, engine::kMostRestMs));
  }
  const JsonReader samples = reader.at("wall_us").at("samples");
  for (std::size_t i = 0; i < samples.size(); ++i) {
    record.samples_us.push_back(samples.element(i).as_number());
  }
  return record;
}

std::string timeline_file(const std::string& path) {
  namespace fs = std::filesystem;
  if (!fs::is_directory(path)) {
    return path;  // the reader says what is wrong with it
  }
  for (const std::string& file :
       {joined(path, kTimelineFile), joined(joined(path, kBestFolder), kTimelineFile)}) {
    if (fs::is_regular_file(file)) {
      return file;
    }
  }
  throw InputError({path, "", "the folder holds no timeline.fst and no best/timeline.fst",
                    "the folder of a run or of a sweep that ended, or a timeline's file"});
}

timeline::Timeline load_checked_timeline(const std::string& file) {
  timeline::Timeline timeline = timeline::load_timeline(file);
  const std::string violation = timeline::check(timeline);
  if (!violation.empty()) {
    throw CheckFailure(file + ": breaks the event contract: " + violation);
  }
  return timeline;
}

}  // namespace fusescope::cli
